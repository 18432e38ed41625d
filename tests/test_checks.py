"""The verb that reads everything: silent on what is whole, a line for each broken part."""

import random
import shutil

import numpy as np
import pytest
from benchmarks.attacks.mutations import strip_digests

from dragoman.checks import find_damage, lacks_digests
from dragoman.cli.command import main
from dragoman.decoding.search.shortlist import SHORT_LIST_FILE, ShortList
from dragoman.folder import WEIGHTS_FILE


@pytest.fixture
def copied(tiny_folder, tmp_path):
    path = shutil.copytree(tiny_folder.path, tmp_path / "copy")
    size = len(tiny_folder.folder.vocabularies.source)
    ShortList(np.zeros((size, 2), np.int64), np.arange(5)).write(path)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus_files):
    """A short run, its corpus in its folder."""
    path = tmp_path_factory.mktemp("runs") / "run"
    (source,), (target,) = corpus_files.source, corpus_files.target
    shape = "--num-encoder-layers 1 --num-decoder-layers 1 --model-dim 16 --feed-forward-dim 16"
    rest = "--num-heads 2 --max-steps 4 --validate-every 2 --batch-tokens 500 --warmup-steps 2"
    main(["train", "--source", str(source), "--target", str(target), "--out", str(path),
          "--device", "cpu", "--vocabulary-size", "330",
          *shape.split(), *rest.split()])  # fmt: skip
    return path


def flip_bit(path, seed=1):
    raw = bytearray(path.read_bytes())
    raw[random.Random(seed).randrange(len(raw) // 2, len(raw))] ^= 4
    path.write_bytes(raw)


def test_a_whole_model(copied, capsys):
    assert find_damage(copied) == []
    assert not lacks_digests(copied)
    main(["check", str(copied)])
    assert capsys.readouterr().out == f"{copied}: all is well\n"


def test_a_model_without_digests(copied, capsys):
    strip_digests(copied)
    main(["check", str(copied)])
    assert "carry no digests" in capsys.readouterr().out


@pytest.mark.parametrize("name", [WEIGHTS_FILE, SHORT_LIST_FILE, "subwords.model", "config.toml"])
def test_a_damaged_model(copied, capsys, name):
    flip_bit(copied / name)
    with pytest.raises(SystemExit) as caught:
        main(["check", str(copied)])
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{copied / name}: ")
    assert out.count("\n") == 1
    assert err.startswith(f"dragoman: {copied}: 1 of its parts")


def test_numbers_that_are_not_finite(copied):
    strip_digests(copied)
    raw = (copied / WEIGHTS_FILE).read_bytes()
    (copied / WEIGHTS_FILE).write_bytes(raw[:-4] + np.array(np.nan, np.float32).tobytes())
    assert "not finite" in " ".join(find_damage(copied))


def test_a_whole_run(finished):
    assert find_damage(finished) == []


@pytest.mark.parametrize(
    "pattern", ["checkpoints/*/model.*", "checkpoints/*/optimiser.*", "checkpoints/*/progress.json",
                "store/train.source.ids", "store/train.target.text", "store/valid.index",
                "store/*/subwords.model", "model.safetensors", "run.json"],
)  # fmt: skip
def test_a_damaged_run(finished, tmp_path, pattern):
    path = shutil.move(shutil.copytree(finished, tmp_path / "copy"), finished.with_name("other"))
    moved = finished.rename(finished.with_name("whole"))
    path.rename(finished)  # so that the run finds its store where it was
    try:
        damaged = sorted(finished.glob(pattern))[-1]
        flip_bit(damaged)
        (line,) = find_damage(finished)
        assert str(damaged) in line
    finally:
        shutil.rmtree(finished)
        moved.rename(finished)
