"""Models join languages, directly or through a third."""

import json

import pytest
from tests.serving.small_service import copy_folder

from dragoman.errors import FolderError
from dragoman.serving.language_pairs import ServedModels, load_models
from dragoman.serving.service_types import ServedModel


def make_models(*pairs):
    return ServedModels(
        [
            ServedModel(
                name=f"m{number}", source=source, target=target, family="x", translator=None
            )
            for number, (source, target) in enumerate(pair.split("-") for pair in pairs)
        ]
    )


def path_of(models, source, target):
    path = models.find_path(source, target)
    return None if path is None else [model.name for model in path]


def test_direct_ways_come_before_others_and_first_models_before_later():
    models = make_models("fr-en", "en-es", "fr-es", "fr-en")
    assert path_of(models, "fr", "es") == ["m2"]
    assert path_of(models, "fr", "en") == ["m0"]


def test_ways_lead_through_one_third_language_at_most():
    models = make_models("fr-en", "en-es", "es-pt")
    assert path_of(models, "fr", "es") == ["m0", "m1"]
    assert path_of(models, "en", "pt") == ["m1", "m2"]
    assert path_of(models, "fr", "pt") is None
    assert path_of(models, "es", "fr") is None
    assert path_of(models, "fr", "fr") == []


def test_of_several_ways_the_first_given_is_taken():
    models = make_models("fr-de", "fr-en", "de-es", "en-es")
    assert path_of(models, "fr", "es") == ["m0", "m2"]


def test_languages_say_what_they_can_become():
    found = {
        each.code: (each.name, each.targets) for each in make_models("fr-en", "en-es").languages()
    }
    assert found == {
        "en": ("English", ("es",)),
        "es": ("Spanish", ()),
        "fr": ("French", ("en", "es")),
    }


def test_models_are_found_by_name():
    models = make_models("fr-en")
    assert models.named("m0").source == "fr"
    assert models.named("m1") is None


def test_folders_are_loaded_under_unique_names(tiny_folder, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    paths = [copy_folder(tiny_folder.path, tmp_path / name, "en", "fr") for name in ("one", "two")]
    models = load_models([*paths, paths[0]], "cpu")
    assert [model.name for model in models.all] == ["en-fr", "en-fr-2", "en-fr-3"]
    assert {(model.source, model.target, model.family) for model in models.all} == {
        ("en", "fr", "transformer")
    }


def test_a_folder_that_does_not_say_its_languages_is_refused(tiny_folder, tmp_path):
    path = copy_folder(tiny_folder.path, tmp_path, "en", "fr")
    facts = json.loads((path / "dragoman.json").read_text())
    del facts["target_language"], facts["digest"]
    (path / "dragoman.json").write_text(json.dumps(facts))
    with pytest.raises(FolderError) as caught:
        load_models([path], "cpu")
    assert str(caught.value) == (
        f"{path}: does not say its languages; write source_language and target_language into its "
        "dragoman.json, and delete “digest” there"
    )
