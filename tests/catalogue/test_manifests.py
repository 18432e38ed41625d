"""The lists of models that sources publish: what is taken from them, and what is left out."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalogue.local_sources import sha256

from dragoman.catalogue.manifests import (
    read_argos,
    read_bergamot,
    read_hub,
    read_opus,
    read_registry,
    read_remote_settings,
)
from dragoman.catalogue.offers import (
    read_file_name,
    read_hash,
    read_language,
    read_size,
    read_words,
)
from dragoman.errors import DownloadError

HASH = sha256(b"")
BASE = "https://files.example/"


def record(kind, *, version="1.0", **more):
    attachment = {"hash": HASH, "size": 10, "filename": f"{kind}.bin", "location": f"w/{kind}"}
    plain = {"name": f"{kind}.deen.bin", "fromLang": "de", "toLang": "en", "version": version,
             "fileType": kind, "attachment": attachment}  # fmt: skip
    return plain | more


def read_records(*records):
    return read_remote_settings(json.dumps({"data": records}).encode(), BASE, "here")


def test_records_of_one_version_make_a_model():
    (offer,) = read_records(*map(record, ("model", "lex", "vocab", "qualityModel")))
    assert (offer.source, offer.pair, offer.variant) == ("mozilla", "de-en", "1.0")
    assert [each.url for each in offer.files] == [f"{BASE}w/{k}" for k in ("model", "lex", "vocab")]
    assert [each.name for each in offer.files] == [
        "model.deen.bin", "lex.deen.bin", "vocab.deen.bin",
    ]  # fmt: skip
    assert {each.sha256 for each in offer.files} == {HASH}
    assert offer.num_bytes == 30


def test_stable_versions_come_first_and_new_ones_before_old_ones():
    records = [
        record(kind, version=version)
        for version in ("1.0", "2.0a1", "1.10", "1.9")
        for kind in ("model", "vocab")
    ]
    assert [each.variant for each in read_records(*records)] == ["1.10", "1.9", "1.0", "2.0a1"]


def test_models_for_phones_and_incomplete_ones_are_left_out():
    phone = {"filter_expression": "env.appinfo.OS == 'Android'"}
    desk = {"filter_expression": "env.appinfo.OS != 'Android'"}
    assert read_records(record("model", **phone), record("vocab", **phone)) == []
    assert len(read_records(record("model", **desk), record("vocab", **desk))) == 1
    assert read_records(record("model"), record("lex")) == []
    assert read_records(record("vocab")) == []
    assert read_records(record("model"), record("srcvocab")) == []
    assert len(read_records(record("model"), record("srcvocab"), record("trgvocab"))) == 1


def test_the_newer_collection_says_hashes_of_what_is_unpacked():
    records = []
    for kind in ("model", "vocab"):
        plain = record(kind, decompressedHash="f" * 64)
        plain |= {"sourceLanguage": plain.pop("fromLang"), "targetLanguage": plain.pop("toLang")}
        plain["attachment"]["filename"] += ".zst"
        records.append(plain)
    (offer,) = read_records(*records)
    assert offer.pair == "de-en"
    assert {each.unpacked_sha256 for each in offer.files} == {"f" * 64}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../.."},
        {"name": None},
        {"fromLang": "../x"},
        {"attachment": "x"},
        {"attachment": {"location": 3}},
    ],
)
def test_records_that_lead_elsewhere_are_left_out(change):
    assert read_records(record("model") | change, record("vocab") | change) == []


def test_released_models_of_the_registry_come_first():
    def entry(status, path="models/de-en/x/model.deen.bin.gz"):
        files = {"model": {"path": path, "uncompressedHash": HASH}, "vocab": {"path": "v.spm"}}
        metrics = {"f": {"bleu": 39}}
        return {
            "architecture": "tiny", "releaseStatus": status, "files": files, "metrics": metrics
        }  # fmt: skip

    entries = [entry(None), entry("Nightly"), entry("Release"), {"files": 3}, 4]
    plain = {"baseUrl": "https://b", "models": {"de-en": entries, "x": 3}}
    offers = read_registry(json.dumps(plain).encode(), "here")
    assert [each.variant for each in offers] == [
        "tiny (Release)", "tiny (not released)", "tiny (Nightly)",
    ]  # fmt: skip
    assert offers[0].files[0].url == "https://b/models/de-en/x/model.deen.bin.gz"
    assert offers[0].files[0].name == "model.deen.bin"
    assert offers[0].scores == {"f": "bleu 39"}


def test_scores_that_cannot_be_are_left_out():
    files = {"model": {"path": "model.bin.gz"}, "vocab": {"path": "vocab.spm.gz"}}
    metrics = {"flores": {"bleu": 10**400, "chrf": float("nan"), "comet": -math.inf, "ter": 7}}
    plain = {"baseUrl": "https://h", "models": {"de-en": [{"files": files, "metrics": metrics}]}}
    (offer,) = read_registry(json.dumps(plain).encode(), "here")
    assert offer.scores == {"flores": "ter 7"}


def test_the_tiny_models_of_bergamot_come_first():
    def entry(kind, **more):
        return {"url": f"https://b/{kind}.tar.gz", "checksum": HASH.upper(), "type": kind,
                "version": 1, "code": f"de-en-{kind}"} | more  # fmt: skip

    plain = {"models": [entry("base"), entry("tiny"), {"url": 3}, entry("x", code="y")]}
    offers = read_bergamot(json.dumps(plain).encode(), "here")
    assert [each.variant for each in offers] == ["tiny 1", "base 1"]
    assert offers[0].files[0].sha256 == HASH
    several = entry("tiny", srcTags={"nb": "Bokmål", "nn": "Nynorsk"}, trgTag="en", code="x")
    offers = read_bergamot(json.dumps({"models": [several]}).encode(), "here")
    assert [each.pair for each in offers] == ["nb-en", "nn-en"]


def test_opus_is_ordered_by_bleu_and_without_bpe():
    def line(name, bleu):
        return f"https://o/deu-eng/{name}.zip\tdeu-eng\tde-en\t0.6\t{bleu}\tGerman\tEnglish"

    lines = [line("opus-2020-06-17", 40), line("opus-2021-02-22", 55), line("opus-2019-12-04", 99),
             "", "x\ty", line("a b", 60), line("opus-2020-07-17", "?")]  # fmt: skip
    offers = read_opus("\n".join(lines).encode(), "here")
    assert [each.variant for each in offers] == ["opus-2021-02-22", "opus-2020-06-17"]
    assert offers[0].scores == {"Tatoeba": "BLEU 55.0, chrF 0.600"}
    with pytest.raises(DownloadError, match="here: is no list of models; check the address"):
        read_opus(b"<html>", "here")


def test_the_newest_packages_of_argos_come_first():
    def entry(version, **more):
        links = ["ipfs://x", f"https://a/translate-de_en-{version}.argosmodel"]
        plain = {"package_version": version, "from_code": "de", "to_code": "en", "links": links}
        return plain | more

    plain = [entry("1.9"), entry("1.10"), entry("2", type="sbd"), entry("3", links=None), 3]
    offers = read_argos(json.dumps(plain).encode(), "here")
    assert [each.variant for each in offers] == ["1.10", "1.9"]
    assert offers[0].files[0].url == "https://a/translate-de_en-1.10.argosmodel"


def test_of_a_repository_only_what_is_needed_is_taken():
    listed = [
        {"type": "file", "path": name, "size": 10}
        for name in (
            "config.json",
            "source.spm",
            "pytorch_model.bin",
            "x.py",
            "a/b.json",
            "../c.json",
        )
    ]
    listed += [{"type": "file", "path": "model.safetensors", "size": 9, "lfs": {"oid": HASH}}]
    files, licence = read_hub(
        json.dumps(listed).encode(), b'{"cardData": {"license": "cc-by-4.0"}}', "https://h/x", "x"
    )
    assert [each.name for each in files] == ["config.json", "model.safetensors", "source.spm"]
    assert files[1].sha256 == HASH
    assert files[1].url == "https://h/x/model.safetensors"
    assert licence == "cc-by-4.0"
    with pytest.raises(DownloadError, match=r"x: has no model\.safetensors"):
        read_hub(b"[]", b"{}", "https://h/x", "x")


KEYS = st.sampled_from(
    ["data", "models", "baseUrl", "files", "model", "vocab", "path", "url", "type", "links",
     "attachment", "location", "name", "fromLang", "toLang", "code", "srcTags", "from_code",
     "to_code", "lfs", "cardData", "metrics", "version", "fileType"]
)  # fmt: skip
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.just("https://h/a.zip"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=40)
@given(PLAIN)
def test_no_list_is_too_strange(plain):
    contents = json.dumps(plain).encode()
    with suppress(DownloadError):
        read_remote_settings(contents, BASE, "here")
    for read in (read_registry, read_bergamot, read_argos, read_opus):
        with suppress(DownloadError):
            read(contents, "here")
    with suppress(DownloadError):
        read_hub(contents, contents, BASE, "here")


def test_deep_and_damaged_lists():
    for contents in (b"[" * 100_000, b"\xff", b"", b"{"):
        with pytest.raises(DownloadError, match="here: is no list of models; check the address"):
            read_argos(contents, "here")


def test_names_hashes_sizes_languages_and_words():
    assert read_file_name("https://h/a/b%20c.zip?x=1") is None
    assert read_file_name("https://h/a/b.zip?x=1#y") == "b.zip"
    assert [read_file_name(each) for each in ("..", ".x", "-x", 3, None, "a" * 300)] == [None] * 6
    assert read_hash("A" * 64) == "a" * 64
    assert [read_hash(each) for each in ("a" * 63, None, 3)] == [None] * 3
    assert [read_size(each) for each in (0, -1, True, 2.0, 1 << 60, "3", None)] == [None] * 7
    assert [read_language(each) for each in ("de", "zh-Hans", "pt_BR")] == [
        "de",
        "zh-Hans",
        "pt_BR",
    ]
    assert [read_language(each) for each in ("", "../de", "d", None, "de en")] == [None] * 5
    assert read_words("a\n\x1b[31m b") == "a ?[31m b"
    assert read_words([1]) == ""
