"""Runs are tried with a small stand-in for the command, and once with the command itself."""

import json
import math
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.data.builtin import write_corpus
from dragoman.errors import OptionError, TrainingError
from dragoman.paper.training_runs import experiment_runs as runs
from dragoman.paper.training_runs.corpora import name_texts, prepare_corpus
from dragoman.paper.training_runs.experiment_runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)
from dragoman.paper.training_runs.outcomes import Plan

# Trains and evaluates like the command as far as files and answers go. The flag --fail makes it
# complain; --stop makes it leave off halfway, the first time.
STAND_IN = """
import json, os, pathlib, sys
words = sys.argv[1:]
value = lambda flag: words[words.index(flag) + 1]
if words[0] == "train":
    out = pathlib.Path(value("--out"))
    if "--fail" in words:
        sys.exit("dragoman: it cannot be done; do something else")
    is_new = "--resume" not in words
    assert is_new != (out / "run.json").exists()
    out.mkdir(exist_ok=True, parents=True)
    (out / "run.json").write_text("{}")
    (out / "model.safetensors").write_text("")
    threads = os.environ["OMP_NUM_THREADS"]
    facts = {"weights": "best", "longest_source": 9, "threads": threads}
    (out / "dragoman.json").write_text(json.dumps(facts))
    events = [{"event": "start", "parameters": 7}, {"event": "update", "tokens_per_second": 4.0},
              {"event": "update", "tokens_per_second": 8.0},
              {"event": "update", "tokens_per_second": 5.0},
              {"event": "validation", "is_best": True, "loss": 2.0},
              {"event": "validation", "is_best": True, "loss": 1.5},
              {"event": "validation", "is_best": False, "loss": 1.7}]
    if is_new and "--stop" in words:
        events.append({"event": "stop"})
    else:
        events.append({"event": "end", "step": 3, "seconds": 2.5})
    (out / "metrics.jsonl").write_text("".join(json.dumps(each) + "\\n" for each in events))
    if is_new and "--stop" in words:
        sys.exit(130)
else:
    facts = json.loads((pathlib.Path(words[1]) / "dragoman.json").read_text())
    bleu = 40.0 + facts["longest_source"]
    scores = [{"name": "BLEU", "value": bleu, "signature": "s"}, {"name": "chrF2", "value": 60.0}]
    print(json.dumps({"scores": scores, "perplexity": 3.0}))
    pathlib.Path(value("--output")).write_text("eins\\nzwei\\n")
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "texts", languages="fr-en", count=60, held_out=5, seed=1)
    return prepare_corpus(name_texts(folder / "texts"), folder, 400, lambda _: None)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    path = tmp_path / "stand_in.py"
    path.write_text(STAND_IN)
    monkeypatch.setattr(runs, "_DRAGOMAN", (sys.executable, str(path)))


def logs(work):
    return {path.parent.name: path.read_text() for path in Path(work).glob("runs/*/log.txt")}


def plan(corpus, name="some", seed=1, flags=()):
    return Plan(name=name, preset="tiny", seed=seed, corpus=corpus, flags=flags)


@pytest.mark.usefixtures("stand_in")
class TestRunAll:
    def test_reads_what_a_run_came_to(self, corpus, tmp_path):
        (outcome,), failures = run_all([plan(corpus)], WorkOptions(work=str(tmp_path)), str)
        assert not failures
        assert (outcome.num_parameters, outcome.num_updates, outcome.seconds) == (7, 3, 2.5)
        assert (outcome.tokens_per_second, outcome.loss) == (5.0, 1.5)
        assert outcome.perplexity == pytest.approx(math.exp(1.5))
        assert (outcome.bleu, outcome.chrf) == (49.0, 60.0)
        assert outcome.translations == ("eins", "zwei")

    def test_a_finished_run_is_used_again(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        first, _ = run_all([plan(corpus)], options, str)
        before = logs(tmp_path)
        said = []
        second, _ = run_all([plan(corpus)], options, said.append)
        assert second == first
        assert logs(tmp_path) == before
        assert said == ["some, seed 1: BLEU 49.00 (was there)"]

    @pytest.mark.parametrize("change", [{"seed": 2}, {"flags": ("--dropout", "0")},
                                        {"preset": "nano"}, {"name": "other"}])  # fmt: skip
    def test_another_run_gets_a_folder_of_its_own(self, corpus, tmp_path, change):
        options = WorkOptions(work=str(tmp_path))
        one = plan(corpus)
        run_all([one, replace(one, **change)], options, str)
        assert len(logs(tmp_path)) == 2

    def test_another_search_or_test_set_is_scored_anew_but_not_trained_anew(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        one = plan(corpus)
        run_all([one], options, str)
        run_all([replace(one, search=("--beam-size", "2"))], options, str)
        texts = replace(corpus.texts, test_source=corpus.texts.valid_source)
        run_all([replace(one, corpus=replace(corpus, texts=texts))], options, str)
        (log,) = logs(tmp_path).values()
        assert log.count("$ dragoman train") == 1
        assert log.count("$ dragoman evaluate") == 3

    def test_a_stopped_run_is_gone_on_with(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        stopped = plan(corpus, flags=("--stop",))
        with pytest.raises(TrainingError, match="status 130"):
            run_all([stopped], options, str)
        (outcome,), _ = run_all([stopped], options, str)
        assert outcome.num_updates == 3
        (log,) = logs(tmp_path).values()
        assert log.count("$ dragoman train") == 2
        assert log.count("--resume") == 1

    def test_what_never_began_is_begun_anew(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        folder = runs._folder_of(plan(corpus), options) / "model"
        folder.mkdir(parents=True)
        (folder / "half").write_text("")
        (outcome,), _ = run_all([plan(corpus)], options, str)
        assert outcome.num_updates == 3
        assert not (folder / "half").exists()

    def test_a_failure_is_told_in_one_line_and_loses_nothing(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        said = []
        plans = [plan(corpus, flags=("--fail",)), plan(corpus)]
        outcomes, failures = run_all(plans, options, said.append)
        assert [each.plan for each in outcomes] == plans[1:]
        assert [each.plan for each in failures] == plans[:1]
        why = failures[0].why
        assert why.startswith("it cannot be done; do something else (status 1, log: ")
        assert "\n" not in why
        assert f"some, seed 1: {why}" in said
        assert tell_failures(failures) == (f"Missing: some, seed 1 came to nothing ({why}).",)

    def test_nothing_but_failures_is_an_error(self, corpus, tmp_path):
        with pytest.raises(TrainingError, match="no run came to its end; some, seed 1: it cannot"):
            run_all([plan(corpus, flags=("--fail",))], WorkOptions(work=str(tmp_path)), str)

    def test_runs_share_the_cores(self, corpus, tmp_path, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(7))
        for jobs, share in ((1, 7), (2, 3), (9, 1)):
            work = tmp_path / str(jobs)
            run_all([plan(corpus)], WorkOptions(work=str(work), jobs=jobs), str)
            (path,) = work.glob("runs/*/model/dragoman.json")
            assert json.loads(path.read_text())["threads"] == str(share)

    def test_fewer_threads_may_be_asked_for(self, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
        for said, share in (("1", 1), ("6", 4), ("0", 4), ("many", 4)):
            monkeypatch.setenv("OMP_NUM_THREADS", said)
            assert runs._share_of_cores(2) == share

    def test_whole_lines_are_translated_in_one_piece(self, corpus, tmp_path):
        (outcome,), _ = run_all(
            [replace(plan(corpus), is_whole=True)], WorkOptions(work=str(tmp_path)), str
        )
        assert outcome.bleu == 40.0

    def test_the_average_of_checkpoints_tells_its_own_loss(self, corpus, tmp_path):
        options = WorkOptions(work=str(tmp_path))
        run_all([plan(corpus)], options, str)
        (path,) = tmp_path.glob("runs/*/model/dragoman.json")
        facts = {"weights": "average of the last 3 checkpoints",
                 "scores": {"validation": "BLEU 41.00, perplexity 4.50"}}  # fmt: skip
        path.write_text(json.dumps(facts))
        (outcome,), _ = run_all([plan(corpus)], options, str)
        assert outcome.perplexity == pytest.approx(4.5)

    def test_no_more_runs_go_on_at_once_than_asked_for(self, corpus, tmp_path, monkeypatch):
        running, most, lock = set(), [], threading.Lock()
        call = runs._call

        def counted(words, log, *rest):
            with lock:
                running.add(log)
                most.append(len(running))
            found = call(words, log, *rest)
            with lock:
                running.discard(log)
            return found

        monkeypatch.setattr(runs, "_call", counted)
        plans = [plan(corpus, seed=seed) for seed in range(5)]
        outcomes, _ = run_all(plans, WorkOptions(work=str(tmp_path), jobs=2), str)
        assert [each.plan for each in outcomes] == plans
        assert max(most) <= 2

    def test_whoever_interrupts_ends_what_runs(self, corpus, tmp_path, monkeypatch):
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

        def interrupt(_plan, _options, running, _say):
            running.append(sleeper)
            raise KeyboardInterrupt

        monkeypatch.setattr(runs, "_run_one", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_all([plan(corpus)], WorkOptions(work=str(tmp_path)), str)
        assert sleeper.wait(timeout=30) != 0


@pytest.mark.slow
def test_the_command_itself_is_gone_on_with_and_used_again(corpus, tmp_path):
    words = "--max-steps 3 --validate-every 2 --model-dim 8 --feed-forward-dim 8"
    wanted = replace(plan(corpus), flags=tuple(words.split()), is_whole=True)
    options = WorkOptions(work=str(tmp_path), device="cpu", jobs=1)
    (first,), _ = run_all([wanted], options, str)
    assert first.num_updates == 3
    assert math.isfinite(first.loss)
    assert len(first.translations) == 5
    events = first.folder / "metrics.jsonl"
    kept = [line for line in events.read_text().splitlines() if json.loads(line)["event"] != "end"]
    events.write_text("".join(f"{line}\n" for line in kept))
    (second,), _ = run_all([wanted], options, str)
    assert (second.loss, second.bleu) == (first.loss, first.bleu)
    said = []
    (third,), _ = run_all([wanted], options, said.append)
    assert third == second
    assert said[-1].endswith("(was there)")


@pytest.mark.parametrize("words", [(), ("1", "1"), ("one",), ("-1",), ("1.5",)])
def test_seeds_are_different_whole_numbers(words):
    with pytest.raises(OptionError, match=r"--seeds is .*: give different whole numbers"):
        read_seeds(words)


def test_seeds_are_read():
    assert read_seeds(("3", "0")) == (3, 0)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("b", "c"), "--x is “c”: there are a, b"),
        (("a", "a"), "--x is “a” twice: name each once"),
        ((), "--x is empty: there are a, b"),
    ],
)
def test_choices_are_checked(names, complaint):
    with pytest.raises(OptionError, match=complaint):
        check_choice("--x", names, ("a", "b"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"jobs": 0}, "--jobs is 0: give ≥ 1"), ({"work": ""}, "--work is empty: name a folder")],
)
def test_work_options_are_checked(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        WorkOptions(**options)
