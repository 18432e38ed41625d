"""“dragoman pull” against a web server that imitates the sources, and all that can go wrong."""

import gzip
import io
import json
import resource
import signal
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.catalogue import local_sources
from tests.catalogue.local_sources import (
    SOURCE_LINES,
    TRANSLATIONS,
    marian_files,
    offer_bergamot,
    offer_mozilla,
    offer_opus,
    offer_registry,
    pack_tar,
    pack_zip,
    sha256,
)
from tests.cli.command_line import fail, run_process

import dragoman
from dragoman.catalogue import installation
from dragoman.catalogue.installation import read_origin
from dragoman.cli.command import main
from dragoman.decoding.options import SearchOptions
from dragoman.exchange import archives
from dragoman.files import locked

GREEDY = SearchOptions(
    beam_size=1, length_penalty=0.0, max_extra_tokens=100, split_sentences="off", search_again=False
)


SHORT = replace(GREEDY, max_extra_tokens=5)


def pull(*words) -> None:
    main(["pull", *map(str, words)])


def translate(name: str) -> list[str]:
    translator = dragoman.load(name, "cpu")
    return [each.text for each in translator.translate_all(SOURCE_LINES, options=GREEDY)]


def is_empty(home) -> bool:
    """Whether nothing is installed, not even half."""
    models = home / "models"
    return not models.exists() or list(models.iterdir()) == []


@pytest.mark.parametrize("source", ["mozilla", "registry", "bergamot", "opus"])
def test_a_model_of_each_source_translates_as_marian_does(home, site, capsys, source):
    manifest = getattr(local_sources, f"offer_{source}")(site)
    pull("fr-en", "--source", source, "--manifest", manifest)
    out, err = capsys.readouterr()
    assert out == f"{home / 'models' / 'fr-en'}\n"
    assert f"fr-en of {source}" in err
    assert "licence: " in err
    assert translate("fr-en") == TRANSLATIONS
    assert not (home / "downloads").exists()
    origin = read_origin(home / "models" / "fr-en")
    asked = {path for path, _ in site.asked}
    for file in origin["files"]:
        path = file["url"].removeprefix(f"{site.address}/")
        assert path in asked
        assert file["sha256"] == sha256(site.files[path])
    card = (home / "models" / "fr-en" / "README.md").read_text(encoding="utf-8")
    assert origin["licence"] in card
    assert origin["attribution"] in card


def test_the_card_keeps_what_came_with_the_model(home, site):
    pull("fr-en", "--source", "opus", "--manifest", offer_opus(site))
    card = (home / "models" / "fr-en" / "README.md").read_text(encoding="utf-8")
    for line in ("* license: CC-BY 4.0", "Creative Commons Attribution 4.0", "- Licence: CC-BY-4.0",
                 "- Published: Tatoeba BLEU 52.1, chrF 0.677"):  # fmt: skip
        assert line in card
    main(["quantise", "fr-en", "small"])
    assert "- Made by: OPUS-MT" in Path("small/README.md").read_text(encoding="utf-8")
    assert not Path("/tmp/dragoman-was-here").exists()


def test_an_address_and_a_file(home, site, tmp_path, capsys):
    site.files["fren.tar.gz"] = pack_tar(marian_files())
    pull(site.url("fren.tar.gz"))
    (tmp_path / "fr.zip").write_bytes(pack_zip(marian_files()))
    pull("fr.zip", "--name", "mine")
    for name in ("fren", "mine"):
        assert translate(name) == TRANSLATIONS
    main(["models"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-2:]] == [
        "fren", "mine",
    ]  # fmt: skip


def test_the_same_name_from_another_address_is_another_file(home, site, capsys):
    site.files["broken/fren.zip"] = pack_zip({"model.npz": b"nothing"})
    assert "model.npz: is no .npz file" in fail(capsys, "pull", site.url("broken/fren.zip"))
    site.files["whole/fren.zip"] = pack_zip(marian_files())
    pull(site.url("whole/fren.zip"))
    assert translate("fren") == TRANSLATIONS
    pull(site.url("whole/fren.zip"), "--name", "in")
    assert translate("in") == TRANSLATIONS


def test_nothing_is_overwritten(home, site, capsys):
    manifest = offer_bergamot(site)
    pull("fr-en", "--source", "bergamot", "--manifest", manifest)
    asked = len(site.asked)
    line = fail(capsys, "pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
    assert "fr-en: is installed already" in line
    assert "“dragoman models --remove fr-en”" in line
    assert len(site.asked) == asked
    pull("fr-en", "--source", "bergamot", "--manifest", manifest, "--name", "fr-en-2")
    assert translate("fr-en-2") == TRANSLATIONS


def test_a_dry_run_downloads_nothing(home, site, capsys):
    pull("fr-en", "--source", "mozilla", "--manifest", offer_mozilla(site), "--dry-run")
    assert "fr-en of mozilla 1.0; 0.1 MB; licence: MPL-2.0" in capsys.readouterr().err
    assert not any(path.startswith("attachments") for path, _ in site.asked)
    assert is_empty(home)


def test_a_hash_that_is_wrong(home, site, capsys):
    manifest = offer_bergamot(site)
    damaged = bytearray(site.files["fren.tar.gz"])
    damaged[100] ^= 1
    site.files["fren.tar.gz"] = bytes(damaged)
    line = fail(capsys, "pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
    assert "has the SHA-256" in line
    assert is_empty(home)


def test_a_hash_of_what_is_unpacked_that_is_wrong(home, site, capsys):
    manifest = offer_registry(site)
    path = next(each for each in site.files if "/model." in each)
    site.files[path] = gzip.compress(b"another model")
    line = fail(capsys, "pull", "fr-en", "--source", "registry", "--manifest", manifest)
    assert "holds something else than its source says (SHA-256)" in line
    assert is_empty(home)


def test_a_download_that_breaks_off_goes_on_with_the_same_command(home, site, capsys):
    manifest = offer_bergamot(site)
    site.cut["fren.tar.gz"] = [1000, 0, 0, 0]
    words = ("pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
    assert "breaks off after 1,000 bytes" in fail(capsys, *words)
    assert is_empty(home)
    main(list(words))
    assert site.asked[-1] == ("fren.tar.gz", "bytes=1000-")
    assert translate("fr-en") == TRANSLATIONS


def test_what_is_not_there(home, site, capsys):
    manifest = offer_bergamot(site)
    del site.files["fren.tar.gz"]
    words = ("--source", "bergamot", "--manifest", manifest)
    assert "the server answers 404; it is not there" in fail(capsys, "pull", "fr-en", *words)
    assert "xx-en: bergamot has no such model" in fail(capsys, "pull", "xx-en", *words)
    line = fail(capsys, "pull", "fr-en", *words, "--variant", "base")
    assert "--variant base: bergamot has “tiny 2”" in line
    assert is_empty(home)


def test_a_list_of_models_that_is_none(home, site, capsys):
    site.files["list"] = b"<html>"
    for source in ("mozilla", "registry", "bergamot", "opus", "argos"):
        site.files["v1/"] = b"[]"
        words = ("pull", "fr-en", "--source", source, "--manifest", site.url("list"))
        assert "check the address" in fail(capsys, *words) or source == "mozilla"


def test_a_list_of_models_leads_to_no_file_of_this_machine(home, site, capsys, tmp_path):
    (tmp_path / "fren.tar.gz").write_bytes(pack_tar(marian_files()))
    manifest = offer_bergamot(site)
    plain = json.loads(site.files["models.json"])
    for url in (str(tmp_path / "fren.tar.gz"), (tmp_path / "fren.tar.gz").as_uri()):
        plain["models"][0] |= {"url": url, "checksum": None}
        site.files["models.json"] = json.dumps(plain).encode()
        line = fail(capsys, "pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
        assert "is no address of the form https://…" in line
    assert is_empty(home)


def test_an_archive_that_moved(home, site):
    manifest = offer_bergamot(site)
    site.files["elsewhere"] = site.files.pop("fren.tar.gz")
    site.moved["fren.tar.gz"] = site.url("elsewhere")
    pull("fr-en", "--source", "bergamot", "--manifest", manifest)
    assert translate("fr-en") == TRANSLATIONS


def test_a_server_that_says_nothing(home, site, capsys):
    manifest = offer_bergamot(site)
    site.silent.add("fren.tar.gz")
    words = ("--source", "bergamot", "--manifest", manifest, "--timeout", "0.05")
    assert "breaks off after 0 bytes (timed out)" in fail(capsys, "pull", "fr-en", *words)
    assert is_empty(home)


def link(name: str, kind: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        packed.addfile(member)
    return buffer.getvalue()


def ten_gigabytes_of_zeros(name: bytes = b"model.npz", kind: bytes = b"0") -> bytes:
    """Write a tar archive of one member in a few megabytes."""
    member = tarfile.TarInfo(name.decode())
    member.size, member.type = 10 << 30, kind
    zeros = gzip.compress(bytes(1 << 26), 9)
    return gzip.compress(member.tobuf()) + zeros * ((10 << 30 >> 26) + 1)


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (pack_tar({"model.npz": b""}, "../../../out"), "leads outside"),
        (pack_zip({"/tmp/out/model.npz": b""}), "leads outside"),
        (pack_zip({"..\\model.npz": b""}), "leads outside"),
        (link("model.npz", tarfile.SYMTYPE), "is a link"),
        (link("model.npz", tarfile.LNKTYPE), "is a link"),
        (link("model.npz", tarfile.CHRTYPE), "is a link"),
        (link("model.npz", tarfile.FIFOTYPE), "is a link"),
        (pack_tar({"model.npz": b"no model"}), "model.npz"),
        (pack_tar({"readme": b"no model"}), "no model"),
        (pack_zip({}), "no model"),
        (b"\x28\xb5\x2f\xfd" + bytes(50), "is packed by zstd"),
        (b"<html>", "no model"),
    ],
    ids=str,
)
def test_archives_that_are_no_models(home, site, capsys, archive, said):
    if said == "is packed by zstd" and sys.version_info >= (3, 14):
        pytest.skip("this Python reads zstd")
    manifest = offer_bergamot(site, archive)
    line = fail(capsys, "pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
    assert said in line
    assert is_empty(home)
    assert not (home.parent / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE])
def test_ten_gigabytes_of_zeros(home, site, capsys, monkeypatch, kind):
    monkeypatch.setattr(archives, "MOST_INFLATION", 2)
    monkeypatch.setattr(archives, "SLACK", 0)
    manifest = offer_bergamot(site, ten_gigabytes_of_zeros(kind=kind))
    line = fail(capsys, "pull", "fr-en", "--source", "bergamot", "--manifest", manifest)
    assert "it is no model" in line or "damaged" in line
    assert is_empty(home)


def test_a_full_disk_and_then_room(home, site):
    manifest = offer_bergamot(site)

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    words = ["pull", "fr-en", "--source", "bergamot", "--manifest", manifest]
    answer = run_process(words, preexec_fn=limit_files)
    assert answer.returncode == 2
    last = answer.stderr.splitlines()[-1]
    assert "(File too large)" in last
    assert "free some space" in last
    assert is_empty(home)
    main(words)
    assert translate("fr-en") == TRANSLATIONS


def test_an_interruption_leaves_nothing_half_installed(home, site):
    manifest = offer_mozilla(site)
    (silent,) = (each for each in site.files if each.endswith("lex.bin"))
    site.silent.add(silent)
    words = ["pull", "fr-en", "--source", "mozilla", "--manifest", manifest]
    command = [sys.executable, "-m", "dragoman", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not site.count(silent):
            assert process.poll() is None, process.stderr.read()
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read().splitlines()[-1] == "dragoman: interrupted"
    assert is_empty(home)
    site.silent.clear()
    main(words)
    assert translate("fr-en") == TRANSLATIONS
    assert site.count(next(each for each in site.files if "/model." in each)) == 1


def test_nothing_unfinished_lies_among_the_models(home, site, monkeypatch):
    seen = []
    real = installation.import_model

    def look_and_import(*words, **options):
        seen.append(is_empty(home))
        real(*words, **options)
        seen.append(is_empty(home))

    monkeypatch.setattr(installation, "import_model", look_and_import)
    pull("fr-en", "--source", "bergamot", "--manifest", offer_bergamot(site))
    assert seen == [True, True]
    assert translate("fr-en") == TRANSLATIONS


def test_of_two_at_once_the_second_waits(home, site):
    manifest = offer_bergamot(site)
    site.silent.add("fren.tar.gz")
    words = ["pull", "fr-en", "--source", "bergamot", "--manifest", manifest]
    second = None
    with locked(home / "downloads" / "fr-en"):
        second = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words], stderr=subprocess.PIPE, text=True
        )
        said = [second.stderr.readline(), second.stderr.readline()]
        assert "waiting for process" in said[1]
        site.silent.clear()
        (home / "models" / "fr-en").mkdir(parents=True)  # as the first would have done
    with second:
        assert second.wait(60) == 2
        assert "fr-en: is installed already" in second.stderr.read()
    assert site.count("fren.tar.gz") == 0


def test_pickles_are_refused_by_name(home, site, capsys):
    site.files["api/models/Helsinki-NLP/opus-mt-fr-en"] = b"{}"
    site.files["api/models/Helsinki-NLP/opus-mt-fr-en/tree/main"] = json.dumps(
        [{"type": "file", "path": "pytorch_model.bin", "size": 10}]
    ).encode()
    line = fail(capsys, "pull", "fr-en", "--source", "huggingface", "--manifest", site.address)
    assert "Helsinki-NLP/opus-mt-fr-en: has its weights only as a pickle" in line
    assert is_empty(home)


def test_a_repository_of_hugging_face(home, site, make_model, vocabularies, tmp_path):
    folder = tmp_path / "hub"
    own = make_model(vocabularies)
    main(["export", str(own), "--to", "huggingface", str(folder)])
    root = "api/models/somebody/small-en-fr"
    listed = []
    for path in folder.iterdir():
        contents = path.read_bytes()
        site.files[f"somebody/small-en-fr/resolve/main/{path.name}"] = contents
        entry = {"type": "file", "path": path.name, "size": len(contents), "oid": "0" * 40}
        if path.suffix == ".safetensors":
            entry["lfs"] = {"oid": sha256(contents), "size": len(contents)}
        listed.append(entry)
    site.files[f"{root}/tree/main"] = json.dumps(listed).encode()
    site.files[root] = json.dumps({"cardData": {"license": "apache-2.0"}}).encode()
    pull("somebody/small-en-fr", "--source", "huggingface", "--manifest", site.address)
    ours, theirs = dragoman.load(own, "cpu"), dragoman.load("small-en-fr", "cpu")
    for text in ("The old dog sees a small house.", "A tree likes the garden."):
        assert (
            theirs.translate(text, options=SHORT).text == ours.translate(text, options=SHORT).text
        )
    assert read_origin(home / "models" / "small-en-fr")["licence"] == "apache-2.0"


def test_a_package_of_argos(home, site, make_model, vocabularies, tmp_path):
    own = make_model(vocabularies)
    package = tmp_path / "translate-en_fr-1_0.argosmodel"
    main(["export", str(own), "--to", "argos", str(package)])
    site.files["v1/en_fr.argosmodel"] = package.read_bytes()
    entry = {
        "package_version": "1.0", "argos_version": "1.5", "from_code": "en", "to_code": "fr",
        "from_name": "English", "to_name": "French", "code": "translate-en_fr",
        "links": [site.url("v1/en_fr.argosmodel")],
    }  # fmt: skip
    site.files["index.json"] = json.dumps([entry]).encode()
    pull("en-fr", "--source", "argos", "--manifest", site.url("index.json"))
    ours, theirs = dragoman.load(own, "cpu"), dragoman.load("en-fr", "cpu")
    text = "The old dog sees a small house."
    assert theirs.translate(text, options=SHORT).text == ours.translate(text, options=SHORT).text


def test_what_is_asked_for_wrongly(home, site, capsys, tmp_path):
    (tmp_path / "m.zip").write_bytes(b"")
    assert "leave --source and --manifest out" in fail(capsys, "pull", "m.zip", "--source", "box")
    assert "say by --source" in fail(capsys, "pull", "fr-en", "--manifest", site.address)
    assert "say by --source" in fail(capsys, "pull", "--manifest", site.address)
    for words in (["--name", "x"], ["--variant", "x"], ["--save", "x"], ["--dry-run"]):
        line = fail(capsys, "pull", *words)
        assert f"{words[0]} means nothing without a model; name one" in line
    assert "is neither languages" in fail(capsys, "pull", "a b", "--name", "x")
    assert "--name ../x: give letters" in fail(capsys, "pull", "fr-en", "--name", "../x")
    assert "--timeout is 0.0" in fail(capsys, "pull", "fr-en", "--timeout", "0")
    assert "--timeout is inf" in fail(capsys, "pull", "fr-en", "--timeout", "inf")
    assert "does not end in the name of a file" in fail(
        capsys, "pull", f"{site.address}/", "--name", "x"
    )
    assert "invalid choice: 'here'" in fail(capsys, "pull", "fr-en", "--source", "here")
    line = fail(capsys, "pull", "xx-yy", "--source", "box")
    assert "looks for models/xx-yy.tar.xz, here and in the checkout" in line


def test_a_bundle_brings_a_model_to_a_machine_without_a_network(home, site, tmp_path, monkeypatch):
    manifest = offer_bergamot(site)
    bundle = tmp_path / "fr-en.bundle"
    words = ("fr-en", "--source", "bergamot", "--manifest", manifest, "--save", bundle)
    pull(*words)
    assert is_empty(home)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "other"))
    main(["install", str(bundle)])
    assert translate("fr-en") == TRANSLATIONS
    origin = read_origin(tmp_path / "other" / "models" / "fr-en")
    assert (origin["source"], origin["licence"]) == ("bergamot", "CC-BY-SA-4.0")


def test_a_bundle_is_not_overwritten(home, site, tmp_path, capsys):
    bundle = tmp_path / "fr-en.bundle"
    bundle.write_bytes(b"precious")
    words = ("pull", "fr-en", "--source", "bergamot", "--save", bundle)
    assert "already holds something" in fail(capsys, *words, "--manifest", offer_bergamot(site))
    assert bundle.read_bytes() == b"precious"
