"""The command as people meet it: what it prints, where, and how it fails."""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.cli.command import build_parser, main
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.options import to_plain
from dragoman.training.optimisers import learning_rate_finder as finder
from dragoman.weights import vocabulary_of, write_model

SMALL = shlex.split(
    "--num-encoder-layers 1 --num-decoder-layers 1 --model-dim 16 --feed-forward-dim 32 "
    "--num-heads 2 --vocabulary-size 320 --batch-tokens 200 --warmup-steps 20 --valid-pairs 20 "
    "--average-checkpoints 2 --log-every 1 --device cpu --precision float32 --preset tiny"
)

SEPARATE = ("--no-joint", "--tied-embeddings", "target")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A small parallel corpus on disk."""
    folder = tmp_path_factory.mktemp("texts")
    numbers = [f"{n} {n * 7 % 10} {n * 3 % 10}" for n in range(200)]
    for language, word in (("de", "Zahl"), ("en", "number")):
        lines = "".join(f"{word} {each}\n" for each in numbers)
        (folder / f"train.{language}").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(texts, tmp_path_factory):
    """A model trained for a moment."""
    out = tmp_path_factory.mktemp("models") / "model"
    main(train_words(texts, out, "--max-steps", "2", "--validate-every", "2"))
    return out


def train_words(texts: Path, out: Path, *more: str) -> list[str]:
    files = ["--source", str(texts / "train.de"), "--target", str(texts / "train.en")]
    return ["train", *files, "--out", str(out), *SMALL, *more]


def run_process(words, **kwargs):
    command = [sys.executable, "-m", "dragoman", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


def fail(capsys, *words) -> str:
    """Run a command that must fail in one line with status 2, and return the line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert stop.value.code == 2
    assert out == ""
    lines = err.splitlines()
    assert lines[-1].startswith("dragoman: ")
    assert "Traceback" not in err
    return lines[-1]


def test_help_imports_nothing_heavy():
    code = (
        "import sys, dragoman.cli.command as cli\n"
        "parser = cli.build_parser()\n"
        "parser.format_help()\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'rich', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb", ["", "train", "translate", "score", "evaluate", "compare", "average", "look", "data"]
)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*([verb] if verb else []), "--help"])
    assert stop.value.code == 0
    assert "usage: dragoman" in capsys.readouterr().out


def test_version_and_module(capsys):
    answer = run_process(["--version"])
    assert answer.returncode == 0
    assert answer.stdout.startswith("dragoman ")


def test_unknown_option_names_the_nearest(capsys):
    assert "did you mean “--batch-tokens”?" in fail(
        capsys, "train", "--out", "x", "--batch-token", "3"
    )


def test_unknown_verb(capsys):
    assert "invalid choice: 'trian'" in fail(capsys, "trian")


def test_no_verb(capsys):
    assert "which verb?" in fail(capsys)


def test_value_of_the_wrong_kind(capsys):
    assert "--seed" in fail(capsys, "train", "--out", "x", "--seed", "one")


def test_missing_corpus(capsys, tmp_path):
    assert "give --source and --target" in fail(capsys, "train", "--out", tmp_path / "x")


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


def test_no_model(capsys, tmp_path):
    assert "no such model folder" in fail(capsys, "translate", tmp_path / "none")
    assert "not a model folder" in fail(capsys, "translate", tmp_path)


def test_truncated_weights(capsys, model, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in model.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert f"{weights}: missing, cut short" in fail(capsys, "translate", copy)


def test_translate_is_line_by_line_and_nothing_else(model, tmp_path):
    text = "Zahl 1 7 3\n\nZahl 2 4 6\n   \n"
    run_process(["translate", model], input="Zahl 1\n")  # says so if it has to compile first
    answer = run_process(["translate", model], input=text)
    assert answer.returncode == 0
    assert answer.stderr == ""
    lines = answer.stdout.split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[3] == lines[4] == ""
    (tmp_path / "text").write_text(text)
    assert run_process(["translate", model, tmp_path / "text"]).stdout == answer.stdout


def test_first_translation_does_not_wait_for_the_last_line(model):
    command = [sys.executable, "-m", "dragoman", "translate", str(model)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("Zahl 1\n")
        process.stdin.flush()
        assert process.stdout.readline() != ""
        process.stdin.write("Zahl 2\n")
        process.stdin.close()
        assert process.stdout.readline() != ""
        assert process.wait() == 0


def test_n_best_has_scores_in_falling_order(model):
    answer = run_process(["translate", model, "--n-best", "3"], input="Zahl 1\nZahl 2\n")
    rows = [line.split(" ||| ") for line in answer.stdout.splitlines()]
    assert {row[0] for row in rows} == {"0", "1"}
    for number in ("0", "1"):
        scores = [float(row[2]) for row in rows if row[0] == number]
        assert 1 <= len(scores) <= 3
        assert scores == sorted(scores, reverse=True)


def test_input_that_is_not_utf8(model):
    command = [sys.executable, "-m", "dragoman", "translate", str(model)]
    answer = subprocess.run(command, input=b"gut\n\xff\nso\n", capture_output=True, check=False)
    assert answer.returncode == 0
    assert answer.stdout.count(b"\n") == 3
    assert "standard input, line 2: not UTF-8" in answer.stderr.decode()


def test_full_disk_while_translating(model):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dragoman", "translate", str(model)]
        answer = subprocess.run(
            command, input="Zahl 1\n", stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].startswith("dragoman: No space left on device")
    assert "Traceback" not in answer.stderr


def test_full_disk_while_printing(tmp_path):
    words = ["data", "builtin", "--sentences", "9", "--held-out", "1", "--out", tmp_path / "b"]
    command = [sys.executable, "-m", "dragoman", *map(str, words)]
    buffered = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            command, stdout=full, stderr=-1, text=True, check=False, env=buffered
        )
    assert answer.returncode == 2
    assert answer.stderr.startswith(
        "dragoman: standard output: cannot be written (No space left on device); the work is done"
    )
    assert (tmp_path / "b" / "train.fr").exists()


def test_closed_output_where_nothing_must_be_printed(tmp_path):
    words = ["data", "builtin", "--sentences", "9", "--held-out", "1", "--out", tmp_path / "b"]
    answer = subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, words)],
        stderr=-1, check=False, preexec_fn=lambda: os.close(1),
    )  # fmt: skip
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_complaints_that_cannot_be_told(tmp_path):
    buffered = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "dragoman", "no-verb"], stderr=full, check=False, env=buffered
        )
    assert answer.returncode == 2


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_out_of_memory(error, model, capsys, monkeypatch):
    def run_out(*_, **__):
        raise error

    monkeypatch.setattr("dragoman.decoding.translator.Translator.load", run_out)
    line = fail(capsys, "translate", model, os.devnull)
    assert line.startswith("dragoman: out of memory; ")


def test_closed_pipe_is_no_error(model):
    translate = f"{sys.executable} -m dragoman translate {model} --max-extra-tokens 1"
    command = f"yes Zahl | head -5000 | {translate} | head -1"
    answer = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert len(answer.stdout.splitlines()) == 1
    assert "Traceback" not in answer.stderr


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


def test_unreadable_input(model):
    answer = run_process(["translate", model], stdin=None, preexec_fn=lambda: os.close(0))
    assert answer.returncode == 2
    assert "standard input" in answer.stderr.splitlines()[-1]


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


def test_unknown_metric_is_noticed_before_translating(model, texts, capsys):
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                texts / "train.en", "--metrics", "blue")  # fmt: skip
    assert "did you mean “bleu”?" in line


def test_evaluate_prints_signed_scores(model, texts, capsys, tmp_path):
    words = ["evaluate", str(model), "--source", str(texts / "train.de"), "--reference",
             str(texts / "train.en"), "--output", str(tmp_path / "out.en")]  # fmt: skip
    main([*words, "--metrics", "bleu", "chrf"])
    text = capsys.readouterr().out
    assert "nrefs:1|bs:1000|seed:12345" in text
    assert "95 % interval" in text
    assert "perplexity" in text
    assert len((tmp_path / "out.en").read_text().splitlines()) == 200
    main([*words, "--json", "--metrics", "bleu"])
    assert json.loads(capsys.readouterr().out)["scores"][0]["name"] == "BLEU"


def test_evaluate_never_overwrites_its_inputs(model, texts, capsys):
    before = (texts / "train.de").read_bytes()
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                texts / "train.en", "--output", texts / "train.de")  # fmt: skip
    assert "is also an input" in line
    assert (texts / "train.de").read_bytes() == before


def test_evaluate_refuses_unequal_files(model, texts, capsys, tmp_path):
    (tmp_path / "short").write_text("one\n")
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                tmp_path / "short")  # fmt: skip
    assert "200 lines" in line
    assert "1 lines" in line


def test_compare_speaks_plainly(capsys, texts, tmp_path):
    reference = (texts / "train.en").read_text().splitlines()
    (tmp_path / "bad").write_text("".join(f"{line[:-2]} x\n" for line in reference))
    (tmp_path / "good").write_text("".join(f"{line}\n" for line in reference))
    main(
        [
            "compare",
            *(str(each) for each in (texts / "train.en", tmp_path / "bad", tmp_path / "good")),
        ]
    )
    text = capsys.readouterr().out
    assert "good is better than" in text
    assert "p " in text
    assert "at least two" in fail(capsys, "compare", texts / "train.en", tmp_path / "bad")


def test_average_of_one_model_is_that_model(model, tmp_path, capsys):
    main(["average", str(model), str(model), "--out", str(tmp_path / "mean")])
    first, second = (each / "model.safetensors" for each in (model, tmp_path / "mean"))
    assert first.read_bytes() == second.read_bytes()
    assert "already holds something" in fail(capsys, "average", model, "--out", tmp_path / "mean")
    assert "--greedy needs" in fail(capsys, "average", model, "--greedy", "--out", tmp_path / "x")


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_look_draws(model, tmp_path, suffix, capsys):
    path = tmp_path / f"picture.{suffix}"
    main(["look", str(model), "Zahl 1", "--out", str(path)])
    assert path.stat().st_size > 1000


def test_look_shows_gradients_of_any_model(model, tmp_path, capsys):
    path = tmp_path / "picture.svg"
    main(["look", str(model), "Zahl 1", "--kind", "gradient", "--out", str(path)])
    assert path.exists()
    assert capsys.readouterr().err == ""


def test_look_says_that_there_is_no_attention(tiny_folder, vocabularies, tmp_path, capsys):
    shape = Seq2seqOptions(num_layers=1, model_dim=8)
    folder = replace(tiny_folder.folder, options=shape, config={"model": to_plain(shape)})
    write_model(tmp_path / "plain", folder, build_model(shape, vocabulary_of(vocabularies)))
    words = ["look", str(tmp_path / "plain"), "The dog.", "--translation", "Le chien."]
    main([*words, "--out", str(tmp_path / "picture.html")])
    told = capsys.readouterr()
    assert told.err == "this model has no attention; shown is gradient × input instead\n"
    assert told.out == f"The dog.\nLe chien.\n{tmp_path / 'picture.html'}\n"


def test_look_refuses_what_is_not_there(model, tmp_path, capsys):
    out = ("--out", tmp_path / "x.png")
    assert "--layer must be from 1 to 1" in fail(capsys, "look", model, "Zahl", *out, "--layer", 2)
    assert "--head is 3: must be from 1 to 2" in fail(
        capsys, "look", model, "Zahl", *out, "--head", 3
    )
    assert "--kind is “croos”" in fail(capsys, "look", model, "Zahl", *out, "--kind", "croos")
    assert "empty" in fail(capsys, "look", model, " ", *out)


def test_builtin_corpus(tmp_path, capsys):
    main(["data", "builtin", "--sentences", "50", "--held-out", "5", "--out", str(tmp_path / "b")])
    assert len((tmp_path / "b" / "train.fr").read_text().splitlines()) == 50
    assert "which kind?" in fail(capsys, "data")


def test_debug_shows_the_traceback(tmp_path):
    answer = run_process(["translate", tmp_path / "none", "--debug"])
    assert "Traceback" in answer.stderr


def test_parser_is_built_once_for_all_verbs():
    assert build_parser().prog == "dragoman"


INTERRUPTED_IMPORT = """
import os, signal, sys
from dragoman.cli.command import main
count = 0
def interrupt(event, arguments):
    global count
    count += event == "import"
    if event == "import" and count == {number}:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
sys.argv = ["dragoman", *{words}]
main()
"""


@pytest.mark.parametrize("number", [1, 2, 10, 50, 100, 200, 400])
def test_interrupted_while_importing(tmp_path, model, number):
    (tmp_path / "in.de").write_text("Zahl 1\n")
    words = ["translate", str(model), str(tmp_path / "in.de")]
    code = INTERRUPTED_IMPORT.format(number=number, words=words)
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (130, "dragoman: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.1 * step for step in range(1, 21)])
def test_interrupted_at_any_moment(tmp_path, model, delay):
    command = [sys.executable, "-m", "dragoman", "translate", str(model), "--device", "cpu"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:  # which waits for input
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            process.kill()
        assert (process.returncode, process.stderr.read()) == (130, "dragoman: interrupted\n")


def test_what_a_message_quotes_does_no_harm(capsys, tmp_path):
    line = fail(capsys, "translate", tmp_path / "\x1b[31mred\x07")
    assert "�[31mred�: no such model folder" in line
    line = fail(capsys, "translate", tmp_path / "/".join(["x" * 200] * 15))
    assert len(line) < 2100
    assert line.endswith("train one with “dragoman train”")
