"""Dragoman trains, runs and explains translation models.

>>> import dragoman
>>> translator = dragoman.load("my-model")                      # doctest: +SKIP
>>> translator.translate("Jane visite l’Afrique en septembre.").text   # doctest: +SKIP
'Jane visits Africa in September.'
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.decoding.translator import Translator

try:
    __version__ = version("dragoman")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"


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
