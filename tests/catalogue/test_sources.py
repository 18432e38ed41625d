"""The catalogue: what it pins, and that it says the truth about the models that come along."""

import hashlib
import importlib.util
import tomllib
from pathlib import Path

import pytest
from tests.catalogue.local_sources import offer_bergamot, offer_registry, sha256

from dragoman.catalogue import sources as sources_module
from dragoman.catalogue.download import Network, fetch
from dragoman.catalogue.installation import PullRequest, find_offer
from dragoman.catalogue.sources import (
    CATALOGUE_FILE,
    find_offers,
    list_available,
    read_catalogue,
    recall_offers,
)
from dragoman.cli.model_verbs.pull import SOURCES
from dragoman.errors import DownloadError, OptionError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    """The script that writes the catalogue."""
    place = importlib.util.spec_from_file_location("catalogue_script", ROOT / "models/catalogue.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def get(url, origin):
    return fetch(url, Network(), origin=origin)


def test_the_catalogue_is_what_its_script_writes(script):
    written = (Path(sources_module.__file__).parent / CATALOGUE_FILE).read_text(encoding="utf-8")
    offers = [*script.list_published(set()), *script.list_box()]
    assert script.to_toml(script.SOURCES, offers) == written


def test_the_models_that_come_along_are_pinned():
    offers = {each.pair: each for each in read_catalogue().offers if each.source == "box"}
    archives = sorted((ROOT / "models").glob("*.tar.xz"))
    assert sorted(f"{pair}.tar.xz" for pair in offers) == [path.name for path in archives]
    for path in archives:
        (file,) = offers[path.name.removesuffix(".tar.xz")].files
        contents = path.read_bytes()
        assert (file.size, file.sha256) == (len(contents), hashlib.sha256(contents).hexdigest())


def test_sources_of_the_catalogue_are_those_of_the_command():
    catalogue = read_catalogue()
    assert (*catalogue.order, "box") == SOURCES
    assert set(catalogue.sources) == set(SOURCES)
    for name in catalogue.order:
        assert catalogue.sources[name].manifest.startswith("https://")


def test_pinned_files_need_no_manifest(home, site, script):
    manifest = offer_bergamot(site)
    script.SOURCES["bergamot"] = script.Source(
        name="bergamot", manifest=manifest, licence="CC0", attribution="us"
    )
    text = script.to_toml(script.SOURCES, script.list_pinned("bergamot", manifest))
    catalogue = read_catalogue(text.encode())
    del site.files["models.json"]
    (offer,), origin = find_offers(catalogue, catalogue.sources["bergamot"], "fr-en", get)
    assert origin is None
    assert offer.files[0].sha256 == sha256(site.files["fren.tar.gz"])
    assert (offer.licence, offer.attribution) == ("CC0", "us")
    request = PullRequest(model="fr-en", source="bergamot")
    assert find_offer(request, catalogue, Network()) == (offer, manifest)


def test_sources_are_asked_in_order(home, site):
    catalogue = read_catalogue()
    registry, bergamot = offer_registry(site), offer_bergamot(site)
    text = (Path(sources_module.__file__).parent / CATALOGUE_FILE).read_text(encoding="utf-8")
    plain = tomllib.loads(text)
    for name, manifest in (("registry", registry), ("bergamot", bergamot)):
        text = text.replace(plain["sources"][name]["manifest"], manifest)
    order = 'order = ["registry", "bergamot"]'
    text = text.replace(text.splitlines()[1], order)
    catalogue = read_catalogue(text.encode())
    offer, origin = find_offer(PullRequest(model="fr-en"), catalogue, Network())
    assert (offer.source, origin) == ("registry", registry)
    site.files["db/models.json"] = b'{"baseUrl": "", "models": {}}'
    offer, origin = find_offer(PullRequest(model="fr-en"), catalogue, Network())
    assert (offer.source, origin) == ("bergamot", bergamot)
    with pytest.raises(DownloadError, match="xx-yy: registry and bergamot have no such model"):
        find_offer(PullRequest(model="xx-yy"), catalogue, Network())
    assert [each.pair for each in recall_offers("bergamot")[0]] == ["fr-en"]


def test_scores_of_the_catalogue_are_those_of_the_same_variant(home, site):
    catalogue = read_catalogue()
    known = {each.variant: each for each in catalogue.offers if each.source == "mozilla"
             and each.pair == "en-de"}  # fmt: skip
    found = sources_module._with_scores(sources_module.Offer(source="mozilla", variant="tiny 2.0"),
                                        list(known.values()))  # fmt: skip
    assert found.scores == known["tiny"].scores
    unknown = sources_module.Offer(source="mozilla", variant="2.0")
    assert sources_module._with_scores(unknown, list(known.values())).scores == {}


def test_the_box_is_named_where_a_source_cannot_be_reached(home, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"cannot be reached.*“--source box” brings the small"):
        find_offer(PullRequest(model="de-en"), read_catalogue(), Network())


@pytest.mark.parametrize("name", ["../x/y", "a/b/../c", "a b/c", "x/y@z z"])
def test_repositories_that_are_none(home, name):
    catalogue = read_catalogue()
    with pytest.raises(OptionError, match="is no repository; give one as OWNER/NAME"):
        find_offers(catalogue, catalogue.sources["huggingface"], name, get)


def test_what_could_be_pulled_by_language_and_pair(home):
    catalogue = read_catalogue()
    german = list(list_available(catalogue, "de"))
    assert {each.pair for each in german} == {"de-en", "en-de"}
    assert {each.pair for each in list_available(catalogue, "en-es")} == {"en-es"}
    assert len(list(list_available(catalogue, None))) == len(catalogue.offers)
