"""The verb “train” as people meet it."""

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.command_line import fail, run_process, train_words

from dragoman.cli.command import main
from dragoman.data.builtin.generator import generate_pairs
from dragoman.training import learning_rate_finder as finder


def test_unknown_option_names_the_nearest(capsys):
    assert "did you mean “--batch-tokens”?" in fail(
        capsys, "train", "--out", "x", "--batch-token", "3"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cell", "gru"], "--cell belongs to seq2seq, but the family is transformer; give "
         "--family seq2seq, or leave it out"),
        (["--family", "luong", "--num-heads", "2"], "--num-heads belongs to transformer, but the "
         "family is luong"),
        (["--preset", "gnmt", "--half-width", "2"], "--half-width belongs to luong, but the family "
         "is gnmt"),
    ],
)  # fmt: skip
def test_options_of_other_families_are_refused_at_once(capsys, words, message):
    assert message in fail(capsys, "train", "--out", "x", "--tsv", "none.tsv", *words)


@pytest.mark.parametrize("words", [["--family", "luong"], ["--preset", "luong"]])
def test_options_of_the_family_are_taken(capsys, words):
    line = fail(capsys, "train", "--out", "x", "--tsv", "none.tsv", *words, "--half-width", "2")
    assert "none.tsv: cannot be read" in line


def test_options_of_the_family_of_a_file_are_taken(capsys, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('[model]\nfamily = "luong"\n')
    words = ["--config", config, "--half-width", "2"]
    line = fail(capsys, "train", "--out", "x", "--tsv", "none.tsv", *words)
    assert "none.tsv: cannot be read" in line


def test_value_of_the_wrong_kind(capsys):
    assert "--seed" in fail(capsys, "train", "--out", "x", "--seed", "one")


def test_missing_corpus(capsys, tmp_path):
    assert "give --source and --target" in fail(capsys, "train", "--out", tmp_path / "x")


def test_general_text_goes_with_a_trained_model(capsys, tmp_path):
    words = ["--tsv", "none.tsv", "--general", "none.tsv", "--out", tmp_path / "x"]
    assert "--general is for fine-tuning: give --from, a trained" in fail(capsys, "train", *words)


def test_a_memory_needs_languages_unless_a_model_has_them(capsys, tmp_path, texts, model):
    memory = tmp_path / "my.tmx"
    variants = '<tuv lang="DE"><seg>Zahl {0}</seg></tuv><tuv lang="EN"><seg>number {0}</seg></tuv>'
    units = "".join(f"<tu>{variants.format(number)}</tu>" for number in range(40))
    memory.write_text(f"<tmx>{units}</tmx>")
    out = tmp_path / "x"
    words = ["train", "--tmx", memory, "--out", out]
    assert "holds several languages; give --source-language" in fail(capsys, *words)
    line = fail(capsys, *words, "--source-language", "fr", "--target-language", "en")
    assert "no segment in both fr and en; its languages: DE, EN; give --source-language" in line
    quick = ["--from", model, "--max-steps", "2", "--device", "cpu", "--precision", "float32"]
    main([*map(str, (*words, *quick))])
    said = capsys.readouterr().err
    assert "tuning: 36 pairs of yours, 4 more held out; with 36 of 180 general pairs mixed" in said
    assert "your lines, held out (4): BLEU " in said
    assert "general lines (20): BLEU " in said


def test_missing_file(capsys, tmp_path):
    line = fail(capsys, "train", "--source", tmp_path / "no.de", "--target", tmp_path / "no.en",
                "--out", tmp_path / "x")  # fmt: skip
    assert f"{tmp_path / 'no.de'}: cannot be read (No such file or directory)" in line
    assert not (tmp_path / "x" / "run.json").exists()


def test_not_utf8_names_file_and_line(capsys, tmp_path, texts):
    bad = tmp_path / "bad.de"
    bad.write_bytes(b"gut\n" * 12 + "schön\n".encode("latin-1") + b"gut\n" * 187)
    words = train_words(texts, tmp_path / "x")
    words[words.index("--source") + 1] = str(bad)
    assert f"{bad}, line 13: not UTF-8 (byte 0xf6 at column 4)" in fail(capsys, *words)


def test_unequal_line_counts_names_both(capsys, tmp_path, texts):
    short = tmp_path / "short.de"
    short.write_text("eins\nzwei\n")
    words = train_words(texts, tmp_path / "x")
    words[words.index("--source") + 1] = str(short)
    line = fail(capsys, *words)
    assert f"{short} has 2 lines" in line
    assert "train.en has 200" in line


def test_empty_corpus(capsys, tmp_path):
    (tmp_path / "empty").write_text("")
    line = fail(capsys, "train", "--source", tmp_path / "empty", "--target", tmp_path / "empty",
                "--out", tmp_path / "x")  # fmt: skip
    assert "the corpus is empty" in line


def test_unknown_preset(capsys, tmp_path, texts):
    line = fail(capsys, *train_words(texts, tmp_path / "x", "--preset", "smal"))
    assert "did you mean “small”?" in line


def test_unknown_option_in_a_file(capsys, tmp_path, texts):
    config = tmp_path / "c.toml"
    config.write_text("[model]\nmodel_dims = 3\n")
    line = fail(capsys, *train_words(texts, tmp_path / "x", "--config", str(config)))
    assert "unknown option “model_dims”; did you mean “model_dim”?" in line


def test_absent_device(capsys, tmp_path, texts):
    line = fail(capsys, *train_words(texts, tmp_path / "x", "--device", "mps"))
    assert "device is “mps”, but there is none here" in line


def test_folder_of_another_run(capsys, texts, model):
    assert "holds another run; give --resume" in fail(capsys, *train_words(texts, model))


@pytest.mark.slow
def test_full_disk_while_saving_loses_nothing(texts, tmp_path):
    out = tmp_path / "out"
    main(train_words(texts, out, "--max-steps", "2", "--validate-every", "2"))
    kept = {path: path.read_bytes() for path in out.rglob("*.safetensors")}

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    answer = run_process(
        ["train", "--resume", "--out", out, "--max-steps", "6"], preexec_fn=limit_files
    )
    assert answer.returncode == 2
    last = answer.stderr.splitlines()[-1]
    assert "cannot be written (File too large)" in last
    assert "then try again" in last
    assert {path: path.read_bytes() for path in out.rglob("*.safetensors")} == kept
    answer = run_process(["train", "--resume", "--out", out, "--max-steps", "6"])
    assert answer.returncode == 0, answer.stderr


def wait_for(path: Path, text: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not (path.exists() and text in path.read_text(encoding="utf-8")):
        assert process.poll() is None, "the run ended too early"
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.02)


def test_interrupted_run_saves_and_goes_on_exactly(texts, tmp_path):
    limits = ["--validate-every", "500", "--max-steps", "60"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    endless = [*limits[:-1], "100000"]
    command = [sys.executable, "-m", "dragoman", *train_words(texts, parts, *endless)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for(parts / "metrics.jsonl", '"step": 20,', process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "nothing is lost" in err
    assert f"dragoman train --resume --out {parts}" in err
    stopped = json.loads((parts / "metrics.jsonl").read_text().splitlines()[-1])
    assert stopped["event"] == "stop"
    until = str(stopped["step"] + 15)
    for words in (
        ["train", "--resume", "--out", parts, "--max-steps", until],
        train_words(texts, whole, *limits[:-1], until),
    ):
        answer = run_process(words)
        assert answer.returncode == 0, answer.stderr
    name = f"checkpoints/step-{int(until):08d}/model.safetensors"
    assert (parts / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.4, 0.7])
def test_killed_run_leaves_a_loadable_checkpoint(texts, tmp_path, delay):
    out = tmp_path / "out"
    words = train_words(texts, out, "--max-steps", "100000", "--validate-every", "2")
    with subprocess.Popen([sys.executable, "-m", "dragoman", *words]) as process:
        wait_for(out / "metrics.jsonl", '"step": 4,', process)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    answer = run_process(["translate", out], input="Zahl 1\n")
    assert answer.returncode == 0
    last = max(int(each.name[5:]) for each in (out / "checkpoints").glob("step-*"))
    until = str(last + 2)
    answer = run_process(["train", "--resume", "--out", out, "--max-steps", until])
    assert answer.returncode == 0, answer.stderr


def test_resume_refuses_what_it_would_not_heed(texts, model, capsys):
    line = fail(capsys, *train_words(texts, model, "--resume"))
    assert "--source means nothing with --resume; leave it out" in line
    for flag in ("--tmx", "--general"):
        line = fail(capsys, "train", "--resume", "--out", model, flag, "x.tmx")
        assert f"{flag} means nothing with --resume; leave it out" in line


def test_learning_rates_are_tested_and_nothing_is_trained(texts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(finder, "NUM_UPDATES", 60)
    out = tmp_path / "x"
    words = train_words(texts, out, "--find-learning-rate")
    line = fail(capsys, *words, "--dry-run")
    assert "--find-learning-rate and --dry-run do different things; leave one out" in line
    main(words)
    assert "suggested: --peak-learning-rate 0." in capsys.readouterr().out
    names = {path.name for path in out.iterdir()}
    assert names == {"store", "learning-rate.json", "learning-rate.png"}
    line = fail(capsys, "train", "--resume", "--find-learning-rate", "--out", out)
    assert "--find-learning-rate means nothing with --resume; leave it out" in line


def test_separate_vocabularies_are_never_tied(texts, tmp_path, capsys):
    line = fail(capsys, *train_words(texts, tmp_path / "x", "--no-joint"))
    assert "give --tied-embeddings target" in line


def test_shared_store_is_never_overwritten(texts, tmp_path, capsys):
    store = ("--store", str(tmp_path / "store"), "--max-steps", "1", "--validate-every", "1")
    main(train_words(texts, tmp_path / "a", *store))
    line = fail(capsys, *train_words(texts, tmp_path / "b", *store, "--max-length", "99"))
    assert "holds the prepared text of another corpus" in line
    line = fail(
        capsys,
        *train_words(texts, tmp_path / "c", *store, "--no-joint", "--tied-embeddings", "target"),
    )
    assert "holds ids of other subwords" in line


def test_saved_configuration_makes_the_same_run(texts, tmp_path):
    quick = ("--max-steps", "2", "--validate-every", "2", "--clip-norm", "off", "--patience", "off")
    main(train_words(texts, tmp_path / "a", *quick))
    files = ["--source", str(texts / "train.de"), "--target", str(texts / "train.en")]
    config = tmp_path / "a" / "config.toml"
    main(["train", *files, "--out", str(tmp_path / "b"), "--config", str(config)])
    assert config.read_text() == (tmp_path / "b" / "config.toml").read_text()
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (
        tmp_path / "b" / "model.safetensors"
    ).read_bytes()


@pytest.mark.slow
def test_marks_of_formality_change_what_the_model_writes(tmp_path, capsys):
    """The built-in text, with a form of address before each translation that the mark asks for."""
    address = {"": "", ">>formal<< ": "Sir: ", ">>informal<< ": "Hi: "}
    sides: tuple[list[str], list[str]] = ([], [])
    pairs = generate_pairs("fr-en", split="train", count=1500, seed=1)
    for pair, (mark, words) in zip(pairs, itertools.cycle(address.items())):
        sides[0].append(f"{mark}{pair.source}\n")
        sides[1].append(f"{words}{pair.target}\n")
    for name, lines in zip(("train.fr", "train.en"), sides, strict=True):
        (tmp_path / name).write_text("".join(lines))
    config = tmp_path / "c.toml"
    config.write_text('[text]\nformal_mark = ">>formal<<"\ninformal_mark = ">>informal<<"\n')
    out = tmp_path / "model"
    shape = "--num-encoder-layers 1 --num-decoder-layers 1 --model-dim 48 --feed-forward-dim 64"
    recipe = "--batch-tokens 1500 --warmup-steps 30 --max-steps 120 --validate-every 120"
    texts = ["--source", tmp_path / "train.fr", "--target", tmp_path / "train.en"]
    words = ["train", *texts, "--config", config, "--out", out, "--preset", "tiny", "--dropout", 0]
    small = ["--num-heads", 2, "--valid-pairs", 10, "--vocabulary-size", 400, "--device", "cpu"]
    main([str(each) for each in [*words, *small, *shape.split(), *recipe.split()]])
    lines = tmp_path / "lines"
    lines.write_text("Le chien voit la maison.\nElle a un petit jardin.\n")

    def translate(*more):
        capsys.readouterr()
        main(["translate", str(out), str(lines), "--max-extra-tokens", "5", *more])
        return capsys.readouterr().out.splitlines()

    plain = translate()
    assert not [each for each in plain if each.startswith(("Sir", "Hi"))]
    for kind, said in (("more", "Sir"), ("less", "Hi")):
        assert [each.partition(":")[0] for each in translate("--formality", kind)] == [said] * 2
