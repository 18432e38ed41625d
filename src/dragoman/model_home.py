"""The model home: where installed models lie, and what a name means where a folder is expected."""

import json
import os
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

from dragoman.errors import FolderError
from dragoman.files import list_own, read_small

HOME_VARIABLE = "DRAGOMAN_HOME"
BOX_SUFFIX = ".tar.xz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,99}")
_PAIR = re.compile(r"[a-z]{2,3}(-[A-Z][A-Za-z]+)?-[a-z]{2,3}(-[A-Z][A-Za-z]+)?")
_MOST_PAIRS = 12
_MOST_LIST_BYTES = 64 << 20
_CHECKOUT = Path(__file__).parents[2]


def home_folder() -> Path:
    """Say where installed models and downloads lie: ``$DRAGOMAN_HOME``, else the data folder."""
    said = os.environ.get(HOME_VARIABLE)
    if said:
        return Path(said).expanduser().absolute()
    if sys.platform == "win32":
        data = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    else:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "dragoman"


def models_folder() -> Path:
    """Say where installed models lie, each in a folder of its name."""
    return home_folder() / "models"


def list_installed() -> list[Path]:
    """List the folders of installed models by name."""
    return [each for each in list_own(models_folder()) if each.is_dir()]


def is_name(text: str) -> bool:
    """Say whether a text can be the name of an installed model, so that it leads nowhere else."""
    return _NAME.fullmatch(text) is not None


def find_model(name: str | Path) -> Path:
    """Find the folder that is meant where a model is expected.

    Returns
    -------
    Path
        The folder or file of that path if there is one, else the installed model of that name.
        What cannot be a name is taken for a path, whether it is there or not.
    """
    path = Path(name)
    if path.exists() or not is_name(str(name)):
        return path
    installed = models_folder() / path
    if installed.is_dir():
        return installed
    if find_box(str(name)) is not None:
        remedy = f"“dragoman pull {name} --source box” brings the small one that comes along"
    elif _PAIR.fullmatch(str(name)):
        remedy = _advise(str(name))
    else:
        remedy = "train one with “dragoman train”, or see “dragoman models”"
    raise FolderError(
        f"{name}: no such model folder, and no model of this name in {models_folder()}; {remedy}"
    )


def _advise(pair: str) -> str:
    """Say what brings a model of a pair of languages, or which pairs are known instead."""
    known = _list_pairs()
    if pair in known:
        return f"“dragoman pull {pair}” brings a published one"
    alike = [each for each in known if set(each.split("-")) & set(pair.split("-"))] or known
    more = " and others" if len(alike) > _MOST_PAIRS else ""
    return (
        f"no published one is known either, but {', '.join(alike[:_MOST_PAIRS])}{more}; “dragoman "
        "models --available” lists all"
    )


def _list_pairs() -> list[str]:
    """List the pairs of the catalogue, and of the lists that the sources gave when last asked."""
    # Read as plain data: the catalogue itself knows of this module.
    contents = (files("dragoman") / "catalogue" / "catalogue.toml").read_text("utf-8")
    offers = tomllib.loads(contents)["offers"]
    for path in sorted((home_folder() / "lists").glob("*.json")):
        try:
            offers += json.loads(read_small(path, _MOST_LIST_BYTES))["offers"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError, FolderError):
            continue
    named = [each for each in offers if isinstance(each, dict)]
    return sorted(
        {f"{each.get('source_language')}-{each.get('target_language')}" for each in named}
    )


def find_box(name: str) -> Path | None:
    """Find the archive of a small model in ``models/``, here or in the checkout that is running."""
    if not is_name(name):
        return None
    places = (Path("models"), _CHECKOUT / "models")
    found = (place / f"{name}{BOX_SUFFIX}" for place in places)
    return next((each.absolute() for each in found if each.is_file()), None)
