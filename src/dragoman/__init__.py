"""Dragoman trains, runs and explains translation models.

>>> import dragoman
>>> translator = dragoman.load("my-model")                      # doctest: +SKIP
>>> translator.translate("Jane visite l’Afrique en septembre.").text   # doctest: +SKIP
'Jane visits Africa in September.'
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.decoding.translator import Translator

    __version__: str


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for, which takes time."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("dragoman")
    except PackageNotFoundError:  # run from a source tree that was not installed
        found = "0+unknown"
    globals()[name] = found  # so that it is looked up once
    return found


def load(path: str, device: str = "auto") -> "Translator":
    """Load a trained model.

    Parameters
    ----------
    path : str
        Its folder.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.

    Returns
    -------
    Translator
        Translates text.
    """
    from dragoman.decoding.translator import Translator

    return Translator.load(path, device)
