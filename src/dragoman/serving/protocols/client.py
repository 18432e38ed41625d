"""Who asks for a translation."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Client:
    """Somebody who sends requests.

    Parameters
    ----------
    name : str
        The name of a key, or an address: what turns are taken by, and limits counted for. Never
        the key itself.
    requests_per_minute : int | None
        How many requests are answered; None: any number.
    characters_per_month : int | None
        How many characters are translated in a calendar month; None: any number.
    has_key : bool
        Whether it named itself by a key.
    """

    name: str
    requests_per_minute: int | None = None
    characters_per_month: int | None = None
    has_key: bool = False
