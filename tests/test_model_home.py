"""What a name means where a model folder is expected."""

import json
import sys
from pathlib import Path

import pytest

from dragoman import model_home
from dragoman.errors import FolderError
from dragoman.model_home import find_box, find_model, home_folder, is_name, list_installed


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(model_home, "_CHECKOUT", tmp_path / "checkout")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def test_a_folder_of_that_path_comes_before_an_installed_model(home):
    installed = home / "models" / "de-en"
    installed.mkdir(parents=True)
    assert find_model("de-en") == installed
    assert find_model(Path("de-en")) == installed
    Path("de-en").mkdir()
    assert find_model("de-en") == Path("de-en")


@pytest.mark.parametrize("path", ["some/de-en", "../de-en", "/de-en", "./x", ".de-en", "~", ""])
def test_what_cannot_be_a_name_is_a_path(home, path):
    assert find_model(path) == Path(path)


def test_a_pair_that_is_missing_says_what_brings_it(home):
    with pytest.raises(FolderError) as missing:
        find_model("de-en")
    assert str(missing.value) == (
        f"de-en: no such model folder, and no model of this name in {home / 'models'}; “dragoman "
        "pull de-en” brings a published one"
    )
    (home / "lists").mkdir(parents=True)
    (home / "lists" / "bad.json").write_text("[")
    offers = [{"source_language": "en", "target_language": "zh-Hans"}]
    (home / "lists" / "argos.json").write_text(json.dumps({"offers": offers}))
    with pytest.raises(FolderError, match="“dragoman pull en-zh-Hans” brings"):
        find_model("en-zh-Hans")
    with pytest.raises(FolderError, match="train one with “dragoman train”, or see “dragoman mod"):
        find_model("my-model")


def test_a_pair_that_nobody_is_known_to_have_is_not_promised(home):
    with pytest.raises(FolderError) as missing:
        find_model("de-it")
    assert str(missing.value).endswith(
        "; no published one is known either, but de-en, en-de; “dragoman models --available” lists "
        "all"
    )
    (home / "lists").mkdir(parents=True)
    offers = [{"source_language": "de", "target_language": f"a{each}"} for each in "abcdefghijklm"]
    (home / "lists" / "argos.json").write_text(json.dumps({"offers": offers}))
    with pytest.raises(FolderError, match=r"but de-aa, .*, de-al and others; “dragoman models"):
        find_model("de-it")
    with pytest.raises(FolderError, match=r"but de-aa, de-ab, .* and others;"):
        find_model("xx-yy")


@pytest.mark.parametrize("place", ["here", "checkout"])
def test_in_a_checkout_the_small_model_is_named(home, place):
    folder = home.parent / place / "models"
    folder.mkdir(parents=True)
    (folder / "de-en.tar.xz").touch()
    assert find_box("de-en") == folder / "de-en.tar.xz"
    with pytest.raises(FolderError, match="“dragoman pull de-en --source box” brings the small"):
        find_model("de-en")
    assert find_box("../models/de-en") is None


def test_installed_models_are_listed_without_what_writers_left(home):
    assert list_installed() == []
    for name in ("b", "a", ".c.1.new", ".c.1.old"):
        (home / "models" / name).mkdir(parents=True)
    (home / "models" / "note").touch()
    assert [each.name for each in list_installed()] == ["a", "b"]


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, "/home/me/.local/share/dragoman"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/dragoman"),
        ("darwin", {}, "/home/me/Library/Application Support/dragoman"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/dragoman"),
        ("win32", {}, "/home/me/AppData/Local/dragoman"),
        ("linux", {"DRAGOMAN_HOME": "~/here"}, "/home/me/here"),
    ],
)
def test_the_home_is_the_platforms_data_folder(monkeypatch, platform, variables, folder):
    for name in ("DRAGOMAN_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/me"} | variables).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert home_folder() == Path(folder)


def test_names():
    assert all(map(is_name, ["de-en", "opus-mt_tc.big@1", "a" * 100]))
    assert not any(map(is_name, ["", ".", "..", "a/b", "a\\b", "-a", "a b", "ä", "a" * 101, "a\n"]))
