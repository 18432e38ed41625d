"""What the desk shows beside translations."""

import pytest
from tests.serving.small_service import copy_folder, make_service

from dragoman.serving.page.page_desk import (
    check_characters,
    name_models,
    read_terms,
    write_doubts,
)
from dragoman.serving.page.page_request import JsonFields
from dragoman.serving.service_types import ServiceError


@pytest.fixture(scope="module")
def service(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    pairs = (("en", "fr"), ("fr", "es"))
    return make_service([copy_folder(tiny_folder.path, folder, *pair) for pair in pairs])


def test_length_is_bounded_by_the_servers_limit(service):
    most = service.options.max_characters
    check_characters(service, "x" * most)
    with pytest.raises(ServiceError, match="20,001 characters, but 20,000 are the most"):
        check_characters(service, "x" * (most + 1))


def test_models_are_named_along_the_path(service):
    assert name_models(service, ["en", "fr", "es"], "") == ["en-fr", "fr-es"]
    assert name_models(service, ["en"], "") == []
    assert name_models(service, ["en", "fr"], "en-fr") == ["en-fr"]


def test_only_terms_that_occur_are_read(service):
    fields = JsonFields({"terms": {"en": [["Dog", "chien"], ["tree", "arbre"]]}})
    assert read_terms(fields, "the dog", "en", "fr") == (("Dog", "chien"),)
    assert read_terms(fields, "the dog", "fr", "es") == ()


def test_translation_in_another_language_is_doubtful(service):
    sentence = "El perro viejo está durmiendo en la cocina de mi abuela."
    pairs = [("The old dog sleeps.", sentence), ("The old dog sleeps.", "Le vieux chien dort.")]
    first, second = write_doubts(service, pairs, "en", "fr")
    assert "seems to be Spanish, not French" in [each["words"] for each in first]
    assert second == []


def test_terms_of_the_glossary_are_no_doubt(service):
    pairs = [("I saw Mr Jones there.", "J’ai vu M. Dupont là-bas.")]
    assert [each["kind"] for each in write_doubts(service, pairs, "en", "fr")[0]] == ["name"]
    assert write_doubts(service, pairs, "en", "fr", [("Jones", "Dupont")]) == [[]]
