"""“dragoman install”: bundles, whole or damaged, and no network for anything but “pull”."""

import io
import os
import subprocess
import sys
import tarfile

import pytest
from tests.catalogue.local_sources import SOURCE_LINES, marian_files, pack_zip
from tests.cli.command_line import fail

from dragoman.catalogue.installation import read_origin
from dragoman.cli.command import main


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "fr-en.zip").write_bytes(pack_zip(marian_files()))
    return tmp_path / "fr-en.zip"


@pytest.fixture
def bundle(home, archive, tmp_path):
    main(["pull", str(archive), "--save", str(tmp_path / "x.bundle")])
    return tmp_path / "x.bundle"


def rewrite(bundle, change) -> None:
    """Change the members of a bundle."""
    with tarfile.open(bundle) as packed:
        members = {each.name: packed.extractfile(each).read() for each in packed}
    change(members)
    with tarfile.open(bundle, "w") as packed:
        for name, contents in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            packed.addfile(member, io.BytesIO(contents))


def test_a_bundle_is_installed_under_its_name(home, bundle, capsys):
    main(["install", str(bundle)])
    assert capsys.readouterr().out.splitlines()[-1] == str(home / "models" / "fr-en")
    assert "fr-en: is installed already" in fail(capsys, "install", bundle)
    main(["install", str(bundle), "--name", "second"])
    assert sorted(each.name for each in (home / "models").iterdir()) == ["fr-en", "second"]


def test_what_an_archive_says_of_other_machines_stays_out(home, archive, tmp_path):
    main(["install", str(archive), "--name", "one"])
    folder = home / "models" / "one"
    files = {f"one/{each.name}": each.read_bytes() for each in folder.iterdir()}
    files |= {"one/run.json": b'{"store": "elsewhere"}', "one/origin.json": b'{"source": "opus"}'}
    (tmp_path / "two.zip").write_bytes(pack_zip(files))
    main(["install", str(tmp_path / "two.zip")])
    found = home / "models" / "two"
    assert not (found / "run.json").exists()
    assert read_origin(found)["source"] == "file"
    assert {each.name for each in found.iterdir()} == {each.name for each in folder.iterdir()}


def test_equal_models_give_equal_bundles(bundle, archive, tmp_path):
    main(["pull", str(archive), "--save", str(tmp_path / "y.bundle")])
    assert (tmp_path / "y.bundle").read_bytes() == bundle.read_bytes()


NAMELESS = b'{"format": 1, "name": "..", "files": {}}'
NEWER = b'{"format": 2, "name": "a", "files": {}}'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update({"fr-en/README.md": b"other"}), "README.md: is not as the bundle says"),
        (lambda m: m.update({"fr-en/more": b"x"}), "more: is not as the bundle says"),
        (lambda m: m.pop("fr-en/config.toml"), "config.toml: is not as the bundle says"),
        (lambda m: m.update({"bundle.json": b"{"}), "bundle.json: is damaged"),
        (lambda m: m.update({"bundle.json": NAMELESS}), "format 1"),
        (lambda m: m.update({"bundle.json": NEWER}), "format 2"),
        (lambda m: m.update({"../out": b"x"}), "leads outside"),
    ],
)  # fmt: skip
def test_a_damaged_bundle_is_refused(home, bundle, capsys, change, said):
    rewrite(bundle, change)
    assert said in fail(capsys, "install", bundle, "--name", "x")
    assert not list((home / "models").iterdir() if (home / "models").exists() else [])


def test_what_is_no_file(home, capsys, tmp_path):
    assert "is no file; “dragoman pull … --save FILE” writes one" in fail(
        capsys, "install", tmp_path
    )
    assert "is no file" in fail(capsys, "install", "https://example.org/m.zip")


WITHOUT_NETWORK = """
import sys
from dragoman.cli.command import main

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request"):
        sys.stderr.write(f"NETWORK {event} {arguments}\\n")
        sys.stderr.flush()
        raise SystemExit(7)

sys.addaudithook(refuse)
for line in sys.stdin.read().splitlines():
    try:
        main(line.split("\\t"))
    except SystemExit as stop:
        assert stop.code in (0, None), (line, stop.code)
"""


def run_without_network(commands, folder) -> None:
    """Run commands in a process that ends at the first connection it would make."""
    lines = "\n".join("\t".join(map(str, each)) for each in commands)
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK], input=lines, capture_output=True, text=True,
        check=False, cwd=folder, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert "NETWORK" not in answer.stderr
    assert answer.returncode == 0, answer.stderr[-2000:]


def test_without_a_network_models_are_installed_listed_checked_and_removed(home, archive):
    commands = [
        ("install", archive.name),
        ("models",),
        ("models", "--available"),
        ("check", "fr-en"),
        ("models", "--remove", "fr-en"),
    ]
    run_without_network(commands, archive.parent)


def test_the_process_without_a_network_would_notice_one(home, site, tmp_path):
    with pytest.raises(AssertionError, match="NETWORK"):
        run_without_network([("pull", site.url("m.zip"))], tmp_path)


@pytest.mark.slow
def test_no_other_verb_uses_the_network_and_all_know_names(home, archive, tmp_path):
    (tmp_path / "text").write_text("\n".join(SOURCE_LINES[:2]) + "\n", encoding="utf-8")
    (tmp_path / "pairs").write_text("Les filles\tThe girls\n", encoding="utf-8")
    quick = ("--max-extra-tokens", "3", "--device", "cpu")
    commands = [
        ("install", archive.name),
        ("pull", archive.name, "--name", "second"),
        ("models",),
        ("models", "--available"),
        ("translate", "fr-en", "text", "--with", "second", *quick),
        ("score", "fr-en", "--tsv", "pairs", "--device", "cpu"),
        ("evaluate", "fr-en", "--source", "text", "--reference", "text", *quick),
        ("check", "fr-en"),
        ("quantise", "fr-en", "small"),
        ("average", "fr-en", "second", "--out", "mean"),
        ("export", "fr-en", "--to", "marian", "out"),
        ("import", archive.name, "again"),
        ("look", "fr-en", "Les filles", "--out", "look.png", "--device", "cpu"),
        ("explain", "fr-en", "Les", "--out", "why.png", "--masks", "2", "--device", "cpu"),
        ("shortlist", "fr-en", "--source", "text", "--target", "text"),
        ("data", "builtin", "--sentences", "60", "--held-out", "2", "--out", "data"),
        (
            "train",
            "--from",
            "fr-en",
            "--source",
            "data/train.fr",
            "--target",
            "data/train.en",
            "--out",
            "new",
            "--dry-run",
        ),
        ("compare", "text", "text", "data/test.fr"),
        ("paper", "parameters"),
        ("completion", "bash"),
        ("models", "--remove", "second"),
    ]
    run_without_network(commands, tmp_path)
