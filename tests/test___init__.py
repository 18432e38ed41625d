"""The public interface: complete, documented, typed, and imported without PyTorch."""

import inspect
import subprocess
import sys

import pytest

import dragoman
from dragoman.errors import DragomanError, OptionError


def test_import_is_light():
    code = "import dragoman, sys; print(len({'torch', 'numpy', 'sentencepiece'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


@pytest.mark.parametrize("name", dragoman.__all__)
def test_public_names_are_there_and_documented(name):
    found = getattr(dragoman, name)
    assert name in dir(dragoman)
    doc = inspect.getdoc(found)
    assert doc
    if inspect.isfunction(found):
        signature = inspect.signature(found)
        assert "Parameters\n" in doc
        for each in signature.parameters.values():
            assert each.annotation is not each.empty, each.name
            assert f"\n{each.name} : " in doc, each.name
        assert signature.return_annotation is not signature.empty
        assert signature.return_annotation is None or "Returns\n" in doc


def test_classes_are_those_of_their_modules():
    from dragoman.decoding.translator import Translator

    assert dragoman.Translator is Translator
    assert dragoman.DragomanError is DragomanError


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'trainn'"):
        dragoman.trainn  # noqa: B018


def test_train_refuses_an_unknown_option(tmp_path):
    with pytest.raises(OptionError, match="max_steps"):
        dragoman.train("a.de", "a.en", tmp_path, options={"training": {"max_step": 3}})


def test_compare_is_compare_systems():
    from dragoman.evaluation.compare import compare_systems

    reference = ["a small house", "the big cat sleeps", "one more line of text"]
    systems = {"one": reference, "two": ["a small cat", "the big cat", "one line of text"]}
    assert dragoman.compare(systems, reference) == compare_systems([reference], systems)


def test_draw_makes_pictures_of_both_kinds(translator, tmp_path):
    seen = dragoman.look(translator, "a b", kinds=["cross"])
    dragoman.draw(seen, tmp_path / "look.png")
    dragoman.draw(dragoman.explain(translator, "a b", num_masks=16), tmp_path / "why.svg")
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "why.svg").read_text(encoding="utf-8")
