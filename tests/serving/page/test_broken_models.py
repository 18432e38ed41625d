"""The folder of broken models: read whole, and refused in one line where it is damaged."""

import json

import pytest

from dragoman.errors import DataError, FolderError
from dragoman.paper.experiments.notes import broken_parts
from dragoman.serving.page.broken_models import MANIFEST, BrokenModels

MODEL = {"name": "no-mask", "title": "no mask", "change": "c", "section": "s", "says": "p",
         "published": None, "bleu": 1.5, "perplexity": 2, "seconds": 3.0, "parameters": 4,
         "chrf": 5.0}  # fmt: skip


def write(folder, **changes):
    (folder / "no-mask").mkdir(parents=True, exist_ok=True)
    for name in ("dragoman.json", "model.safetensors"):
        (folder / "no-mask" / name).touch()
    told = {"format": 1, "corpus": "c", "updates": 7, "examples": [["a", "b"]], "models": [MODEL]}
    (folder / MANIFEST).write_text(json.dumps(told | changes))
    return folder


def test_description_is_read(tmp_path):
    broken = BrokenModels(write(tmp_path))
    assert broken.description["updates"] == 7
    assert broken.description["models"][0]["bleu"] == 1.5
    assert broken.find("no-mask") == tmp_path / "no-mask"
    assert broken.find("../no-mask") is None
    assert MANIFEST == broken_parts.MANIFEST


@pytest.mark.parametrize("changes", [
    {"models": [MODEL | {"name": "../x"}]}, {"models": [MODEL | {"bleu": "x"}]},
    {"models": [MODEL | {"perplexity": float("nan")}]}, {"models": 3},
    {"models": [{}]}, {"examples": [["a"]]}, {"updates": None},
    {"models": [MODEL | {"published": {"bleu": 1}}]},
])  # fmt: skip
def test_damage_is_named(tmp_path, changes):
    with pytest.raises(DataError, match=r"broken\.json: is damaged; make it by “dragoman paper"):
        BrokenModels(write(tmp_path, **changes))


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(
        FolderError, match=r"broken\.json: cannot be read .* “dragoman paper broken”"
    ):
        BrokenModels(tmp_path)
    write(tmp_path)
    (tmp_path / "no-mask" / "model.safetensors").unlink()
    with pytest.raises(FolderError, match=r"model\.safetensors: is missing; make it by"):
        BrokenModels(tmp_path)


def test_number_of_models_is_bounded(tmp_path):
    many = [MODEL | {"name": f"m{place}"} for place in range(17)]
    for models in ([], many):
        with pytest.raises(DataError, match=rf"names {len(models)} models, must be 1 to 16"):
            BrokenModels(write(tmp_path, models=models))
