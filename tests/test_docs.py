"""Every command in the README and the docs runs, and every link leads somewhere.

The commands run as they are written, on small files, with small models: the training commands get
a few flags more, and torchrun starts two processes on the CPU however many it is asked for.
"""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

import dragoman
from dragoman.cli.command import build_parser, main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
RUN_PAGES = (
    "models",
    "guide",
    "families",
    "experiments",
    "scaling",
    "exchange",
    "decoding",
    "page",
)
LONG_PAGES = ("guide", "families", "experiments", "scaling", "page")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SMALL = shlex.split(
    "--num-encoder-layers 1 --num-decoder-layers 1 --model-dim 16 --feed-forward-dim 32 "
    "--num-heads 2"
)


def commands(page: Path) -> list[str]:
    """The lines that begin with “$ ” in blocks marked as console."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the files that the docs speak of."""
    folder = tmp_path_factory.mktemp("docs")
    main(
        ["data", "builtin", "--sentences", "150", "--held-out", "12", "--out", str(folder / "data")]
    )
    data = folder / "data"
    for name, split in (("my", "train"), ("train", "train"), ("more", "valid"),
                        ("valid", "valid"), ("test", "test")):  # fmt: skip
        shutil.copy(data / f"{split}.fr", folder / f"{name}.de")
        shutil.copy(data / f"{split}.en", folder / f"{name}.en")
    for language in ("de", "en"):
        plain = (folder / f"more.{language}").read_bytes()
        (folder / f"more.{language}.gz").write_bytes(gzip.compress(plain))
    pairs = zip(
        *((folder / f"my.{each}").read_text().splitlines() for each in ("de", "en")), strict=True
    )
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    shutil.copy(folder / "pairs.tsv", folder / "general.tsv")
    write_memory(folder / "memory.tmx", folder / "pairs.tsv")
    zipped = ROOT / "tests" / "exchange" / "opus_zip" / "opus1m-2021-02-18.zip"
    shutil.copy(zipped, folder / "opus-2021-02-18.zip")
    (folder / "text.de").write_text("Jane visite l’Afrique.\n\nGuten Morgen.\n")
    (folder / "glossary.tsv").write_text("Jane\tJane\nGuten Morgen\tgood morning\n")
    with zipfile.ZipFile(folder / "bericht.docx", "w") as archive:
        text = "<w:body><w:p><w:r><w:t>Guten Morgen.</w:t></w:r></w:p></w:body>"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="w">{text}</w:document>')
    (folder / "preise.csv").write_text("id,text\n1,Guten Morgen.\n2,Ein Haus.\n")
    (folder / "words.txt").write_text("damn\nas soon as possible\n")
    return folder


def write_memory(path: Path, pairs: Path) -> None:
    """Write pairs as a translation memory."""
    units = "".join(
        f'<tu><tuv xml:lang="de-DE"><seg>{one}</seg></tuv>'
        f'<tuv xml:lang="en-GB"><seg>{other}</seg></tuv></tu>\n'
        for one, other in (line.split("\t") for line in pairs.read_text().splitlines())
    )
    path.write_text(f'<tmx version="1.4"><body>{units}</body></tmx>', encoding="utf-8")


def made_quick(words: list[str]) -> list[str]:
    """Add flags with which a command takes little time."""
    if "--document" in words:  # which has no length of lines to be limited
        return words
    if words[:2] == ["paper", "broken"]:
        small = "--sentences 3000 --held-out 12 --max-steps 2 --batch-tokens 500 --device cpu"
        return [*words, *shlex.split(small)]
    if words[0] in ("translate", "evaluate"):
        return [*words, "--max-extra-tokens", "5"]
    if words[0] != "train" or "--resume" in words:
        return words
    words = [*words, "--max-steps", "2", "--validate-every", "1", "--device", "cpu"]
    for flag, value in (("--batch-tokens", "500"), ("--valid-pairs", "10")):
        if flag not in words:
            words += [flag, value]
    is_other = "--family" in words or any(word.startswith("paper-") for word in words)
    return words if "--from" in words or is_other else words + SMALL


def run_together(words: list[str]) -> None:
    """Run what torchrun is asked for with two processes on the CPU, unless on several machines."""
    launch, own = words[: words.index("-m")], words[words.index("dragoman") + 1 :]
    if "--nnodes" in launch:
        return
    launch[launch.index("--nproc-per-node") + 1] = "2"
    subprocess.run(
        [*TORCHRUN, *launch, "-m", "dragoman", *made_quick(own)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        check=True,
        timeout=300,
    )


def prepare_serving() -> None:
    """Make what the page on serving speaks of, where no other page has made it."""
    if not Path("my-model").exists():
        train = "train --source my.de --target my.en --out my-model"
        main(made_quick(shlex.split(train)))
    if not Path("other-model").exists():
        shutil.copytree("my-model", "other-model")
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    (keys,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    Path("keys.toml").write_text(keys, encoding="utf-8")


def run_server(words: list[str]) -> None:
    """Start what serves, at a free port; see that it answers, and stop it as a system would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *words, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    try:
        said = iter(process.stdout.readline, "")
        address = next(line.strip() for line in said if line.startswith("http://"))
        port = address.rstrip("/").rsplit(":", 1)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            assert "Dragoman" in answer.read().decode()
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.stdout.close()


def run(command: str, capsys, monkeypatch) -> None:
    """Run one command of the docs, redirections included."""
    words = shlex.split(command)
    given, taken = None, None
    if ">" in words:
        taken = words[words.index(">") + 1]
        words = words[: words.index(">")]
    if "<" in words:
        given = words[words.index("<") + 1]
        words = words[: words.index("<")]
    if words[0] == "torchrun":
        run_together(words[1:])
        return
    assert words[0] == "dragoman"
    if words[1] in ("serve", "watch"):
        prepare_serving()
        run_server(words[1:])
        return
    if words[1] == "pull" and "box" not in words:  # the sources are imitated in other tests
        assert hasattr(build_parser().parse(words[1:]), "run")
        return
    if "--help" in words:
        with pytest.raises(SystemExit) as stop:
            main(words[1:])
        assert stop.value.code == 0
        return
    words = made_quick(words[1:])
    with Path(given or "/dev/null").open("rb") as source:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": source})())
        main(words)
    if taken:
        Path(taken).write_text(capsys.readouterr().out, encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.stem in LONG_PAGES else (), id=page.name)
        for page in (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in RUN_PAGES))
    ],
)
def test_commands_run(page, workplace, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    own = [each for each in commands(page) if each.startswith(("dragoman", "torchrun"))]
    assert len(own) >= 3
    for command in own:
        run(command, capsys, monkeypatch)
    if page.name == "README.md":
        assert len((workplace / "text.en").read_text().split("\n")) == 4
        best = dragoman.load("my-model").translate("Guten Morgen.", num_best=3)
        assert len(best.alternatives) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_commands_are_make_targets_or_pip_or_benchmarks(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(page):
        words = shlex.split(command)
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "python":
            source = (ROOT / words[1]).read_text(encoding="utf-8")
            assert all(f'"{word}"' in source for word in words if word.startswith("--")), command
        else:
            assert words[0] in ("dragoman", "pip", "torchrun")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_torchrun_and_dragoman_know_every_flag(page):
    from torch.distributed.run import get_args_parser

    for command in commands(page):
        words = shlex.split(command)
        if words[0] == "torchrun":
            launch = get_args_parser().parse_args(words[1:])
            assert (launch.module, launch.training_script) == (True, "dragoman")
            assert hasattr(build_parser().parse(launch.training_script_args), "run")


def test_figures_are_those_of_the_result_that_is_named():
    text = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    (name,) = set(re.findall(r"results/([\w-]+\.json)", text))
    figures = json.loads((ROOT / "benchmarks" / "results" / name).read_text())["figures"]
    rows = re.findall(r"\| `(\w+)` \| ([\d.,]+) \|", text)
    assert len(rows) > 10
    for key, shown in rows:
        value = figures[key]
        assert shown == (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"), key


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in link or (page.parent / link).exists(), link


def test_paper_map_names_what_exists():
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    for path, names in re.findall(r"`([a-z_/]+\.py)`: ((?:`[A-Za-z_.]+`(?:, )?)+)", text):
        source = (ROOT / "src" / "dragoman" / path).read_text(encoding="utf-8")
        for name in re.findall(r"`([A-Za-z_.]+)`", names):
            for part in name.split("."):
                assert re.search(rf"(def|class) {part}\b", source), f"{path}: {name}"


def test_tour_names_what_exists():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    drawn = re.findall(r"([a-z_0-9/]+\.py): (\w+)", text)
    linked = re.findall(r"`([\w.]+)`\s+in\s+\[`[\w/.]+`\]\(\.\./src/dragoman/([\w/.]+)\)", text)
    assert len(drawn) > 15
    assert len(linked) > 8
    for path, name in [*drawn, *(reversed(each) for each in linked)]:
        source = (ROOT / "src" / "dragoman" / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b", source), f"{path}: {name}"


def test_readme_tree_names_what_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text.split("src/dragoman/\n", 1)[1].split("```", 1)[0]
    names = {path.name for path in (ROOT / "src" / "dragoman").rglob("*.py")}
    for name in re.findall(r"\b([a-z_]+\.py)\b", tree):
        assert name in names, name


def test_every_page_is_in_the_contents_of_the_site():
    named = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_reference_names_all_that_is_public():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    directives = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    for name in dragoman.__all__:
        found = getattr(dragoman, name)
        places = {found.__module__, f"{found.__module__}.{name}"}
        assert places & directives, name


def test_gallery_shows_every_picture():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "pictures").iterdir():
        assert f"(pictures/{path.name})" in text, path.name


@pytest.mark.slow
def test_site_is_built_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra “docs”")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        check=True,
    )
    assert "Translate one text" in (tmp_path / "api.html").read_text(encoding="utf-8")
    assert "glossary" in (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    for page in tmp_path.glob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*>", page.read_text(encoding="utf-8"))
        assert not [tag for tag in loaded if "://" in tag or '="//' in tag], page.name


@pytest.mark.slow
def test_demonstration_keeps_its_promises(tmp_path):
    for each in ("examples", "models"):
        (tmp_path / each).symlink_to(ROOT / each)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = ["sh", "examples/demo.sh"]
    subprocess.run(script, cwd=tmp_path, env=environment, check=True)
    demo = tmp_path / "demo"
    bleu = float(re.search(r"BLEU ([\d.]+)", (demo / "scores.txt").read_text()).group(1))
    assert bleu >= 90
    assert (demo / "jane.translated.txt").read_text() == "Jane visits Africa in September.\n"
    assert (demo / "cat.translated.txt").read_text() == "este gato es muy grande\n"
    assert (demo / "attention.png").read_bytes().startswith(b"\x89PNG")
