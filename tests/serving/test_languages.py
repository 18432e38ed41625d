"""Clients call languages by many names."""

import pytest

from dragoman.serving.languages import NAMES, match_language, name_language


@pytest.mark.parametrize(
    ("code", "served", "found"),
    [
        ("fr", ["en", "fr"], "fr"),
        ("FR", ["en", "fr"], "fr"),
        ("EN-US", ["en", "fr"], "en"),
        ("pt_br", ["pt", "pt-BR"], "pt-BR"),
        ("pt-PT", ["pt", "pt-BR"], "pt"),
        ("pt", ["en", "pt-BR"], "pt-BR"),
        ("pt", ["pt-PT", "pt-BR"], None),
        ("zz", ["en", "fr"], None),
        ("", ["en", "fr"], None),
        ("e", ["en", "fr"], None),
    ],
)
def test_finds_the_language_that_is_meant(code, served, found):
    assert match_language(code, served) == found


def test_names_are_english_and_unknown_codes_name_themselves():
    assert name_language("fr") == "French"
    assert name_language("pt-BR") == "Portuguese (BR)"
    assert name_language("nb") == "Norwegian Bokmål"
    assert name_language("tlh") == "tlh"
    assert len(NAMES) > 170
    assert all(len(code) == 2 and name[0].isupper() for code, name in NAMES.items())
