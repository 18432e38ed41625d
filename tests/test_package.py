"""What is shipped: the wheel of “make package” holds every file and runs where it is installed."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOP = ("MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "pyproject.toml")


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder that the command in the Makefile fills, run on a copy of the tree."""
    tree = tmp_path_factory.mktemp("package") / "tree"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=left_out)
    for name in TOP:
        shutil.copy(ROOT / name, tree / name)
    (command,) = re.findall(
        r'-c "(from setuptools.*)"$', (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    subprocess.run([sys.executable, "-c", command], cwd=tree, check=True, capture_output=True)
    return tree / "dist"


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_package(dist):
    (wheel,) = dist.glob(f"dragoman-{PROJECT['version']}-*.whl")
    held = {each for each in zipfile.ZipFile(wheel).namelist() if each.startswith("dragoman/")}
    source = ROOT / "src"
    there = {
        path.relative_to(source).as_posix()
        for path in (source / "dragoman").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == there


@pytest.mark.slow
def test_source_archive_holds_what_is_built_from(dist):
    with tarfile.open(dist / f"dragoman-{PROJECT['version']}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "CHANGELOG.md", "examples/train.py"} <= held
    assert "src/dragoman/presets/small.toml" in held


@pytest.mark.slow
def test_installed_wheel_tells_its_version_and_makes_data(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    place = tmp_path / "venv"
    venv.create(place, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install"]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, wheel], check=True)
    # Dependencies are those of this interpreter, whose own Dragoman comes later on the path.
    (packages,) = (place / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: object) -> str:
        command = [str(place / "bin" / words[0]), *map(str, words[1:])]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    assert run("dragoman", "--version") == f"dragoman {PROJECT['version']}\n"
    assert str(place) in run("python", "-c", "import dragoman; print(dragoman.__file__)")
    run("dragoman", "data", "builtin", "--sentences", "20", "--held-out", "5", "--out", "data")
    assert len((tmp_path / "data" / "train.fr").read_text(encoding="utf-8").splitlines()) == 20


def test_version_is_told_everywhere():
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{version}] – " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_container_and_hooks_do_what_readme_and_makefile_say():
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert 'pip install ".[serve]"' in (ROOT / "README.md").read_text(encoding="utf-8")
    assert '"/source[serve]"' in steps
    assert 'ENTRYPOINT ["dragoman"]' in steps
    hooks = re.findall(r"entry: \.venv/bin/(.*?), ", (ROOT / ".pre-commit-config.yaml").read_text())
    check = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(RUN)", "python -m")
    assert len(hooks) == 4
    for command in hooks:
        assert command in check
