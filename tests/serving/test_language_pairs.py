"""Models join languages, directly or through a third."""

import json

import pytest
from tests.exchange.test_foreign_model import EXPECTED, ZIP
from tests.serving.small_service import ask, copy_folder, make_service, translate

from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.exchange.foreign_model import import_model
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
    assert [each.source for each in models.named("m0")] == ["fr"]
    assert models.named("m1") == []


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


def test_a_model_may_stay_within_a_language(tiny_folder, tmp_path):
    models = load_models([copy_folder(tiny_folder.path, tmp_path, "en", "en")], "cpu")
    assert [(each.source, each.target) for each in models.all] == [("en", "en")]


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Give a model that translates French to English or copies it, called Spanish to try that."""
    folder = tmp_path_factory.mktemp("several")
    import_model(ZIP, folder / "model")
    return copy_folder(folder / "model", folder, "es", "none")


def test_each_target_is_a_pair(several):
    models = load_models([several], "cpu")
    assert [(each.name, each.source, each.target, each.into) for each in models.all] == [
        ("es-none", "es", "fr", "fra"), ("es-none", "es", "en", "eng"),
    ]  # fmt: skip
    assert models.languages()[1].targets == ("en", "fr")


def test_texts_become_the_language_that_is_asked_for(several, tiny_folder, tmp_path):
    text = EXPECTED["texts"][0]
    pivot = copy_folder(tiny_folder.path, tmp_path, "fr", "de")
    service = make_service([several, pivot])
    said = {"source": "es"}
    into_en, into_fr, by_name, further, neither = translate(
        service, ask(text, target="en", **said), ask(text, target="fr", **said),
        ask(text, target="fr", model="es-none", **said), ask(text, target="de", **said),
        ask(text, target="it", **said),
    )  # fmt: skip
    translator = Translator.load(several, "cpu")
    english, french = (
        translator.translate(text, options=translator.options_with({"into": each})).text
        for each in ("en", "fr")
    )
    assert english != french
    assert [each[0].text for each in (into_en, into_fr, by_name)] == [english, french, french]
    assert into_fr[0].path == ("es", "fr")
    assert further[0].path == ("es", "fr", "de")
    assert further[0].text == Translator.load(pivot, "cpu").translate(french).text
    assert "it is not supported" in str(neither)
