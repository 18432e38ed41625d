"""What a page reads of logs: from where it stopped, whatever happens to the file."""

import dataclasses
import json
import os

import pytest

from dragoman.errors import FolderError
from dragoman.serving.page import page_runs
from dragoman.serving.page.page_runs import (
    WatchedRuns,
    find_runs,
    name_runs,
    read_run,
    read_run_facts,
)
from dragoman.training.learning_rate_finder import analyse_curve
from dragoman.training.log import METRICS_FILE, Log


def update(step, **more):
    facts = {"event": "update", "time": 100.0 + step, "step": step, "loss": 1 / step}
    return facts | {"learning_rate": 0.001, "tokens_per_second": 9.0} | more


def write(folder, *events, mode="a"):
    folder.mkdir(exist_ok=True)
    with (folder / METRICS_FILE).open(mode) as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def test_log_as_training_writes_it_is_read(tmp_path):
    with Log(tmp_path, stream=(tmp_path / "told").open("w")) as log:
        log.event("start", step=0, parameters=5)
        log.event("update", step=1, epoch=0, loss=2.0, tokens_per_second=3.0, learning_rate=0.1,
                  share_done=0.25, seconds_left=30.0)  # fmt: skip
        probes = [["a source", "its reference", "a translation"]] * 3
        log.event("validation", step=1, loss=1.0, perplexity=2.7, bleu=3.5, is_best=True,
                  probes=probes)  # fmt: skip
        log.event("stagnation", step=1, since=1)
        log.event("end", step=1, why="done")
    found = read_run(tmp_path, 0, "")
    ((step, _, loss, rate, speed, share, left),) = found["points"]
    assert (step, loss, rate, speed, share, left) == (1, 2.0, 0.1, 3.0, 0.25, 30.0)
    (validation,) = found["validations"]
    assert (validation["bleu"], validation["is_best"], validation["probes"]) == (3.5, True, probes)
    assert [event["event"] for event in found["events"]] == ["start", "stagnation", "end"]
    assert not found["isWaiting"]


def test_sample_of_an_older_log_is_read(tmp_path):
    sample = ["a source", "its reference", "a translation"]
    write(tmp_path, {"event": "validation", "step": 1, "bleu": 3.5, "sample": sample})
    assert read_run(tmp_path, 0, "")["validations"][0]["probes"] == [sample]


def test_only_what_is_new_is_read(tmp_path):
    write(tmp_path, update(1), update(2))
    first = read_run(tmp_path, 0, "")
    assert first["restarts"]
    assert [point[0] for point in first["points"]] == [1, 2]
    nothing = read_run(tmp_path, first["offset"], first["token"])
    assert not nothing["restarts"]
    assert nothing["points"] == []
    write(tmp_path, update(3))
    more = read_run(tmp_path, first["offset"], first["token"])
    assert (more["restarts"], [point[0] for point in more["points"]]) == (False, [3])


def test_line_that_is_being_written_waits(tmp_path):
    write(tmp_path, update(1))
    with (tmp_path / METRICS_FILE).open("a") as file:
        file.write('{"event": "upd')
    first = read_run(tmp_path, 0, "")
    assert len(first["points"]) == 1
    with (tmp_path / METRICS_FILE).open("a") as file:
        file.write(json.dumps(update(2))[len('{"event": "upd') :] + "\n")
    assert [
        point[0] for point in read_run(tmp_path, first["offset"], first["token"])["points"]
    ] == [2]


def test_resumed_run_begins_anew(tmp_path):
    write(tmp_path, update(1), update(2), update(3))
    first = read_run(tmp_path, 0, "")
    with Log(tmp_path, resumed_step=1, stream=(tmp_path / "told").open("w")) as log:
        log.event("update", **{k: v for k, v in update(2).items() if k not in ("event", "time")},
                  epoch=0)  # fmt: skip
    again = read_run(tmp_path, first["offset"], first["token"])
    assert again["restarts"]
    assert [point[0] for point in again["points"]] == [1, 2]


def test_shorter_file_begins_anew(tmp_path):
    write(tmp_path, update(1), update(2))
    first = read_run(tmp_path, 0, "")
    write(tmp_path, update(5), mode="w")
    again = read_run(tmp_path, first["offset"], first["token"])
    assert (again["restarts"], [point[0] for point in again["points"]]) == (True, [5])


def test_run_that_has_not_begun_is_waited_for(tmp_path):
    assert read_run(tmp_path, 0, "")["isWaiting"]
    write(tmp_path, update(1))
    assert not read_run(tmp_path, 0, "")["isWaiting"]


def test_lines_that_are_no_events_are_left_out(tmp_path):
    tmp_path.joinpath(METRICS_FILE).write_bytes(
        b'\xff\xfe\nnot json\n[1]\n"text"\nnull\n{"event": "other"}\n'
        + json.dumps(update(1)).encode()
        + b"\n"
    )
    found = read_run(tmp_path, 0, "")
    assert len(found["points"]) == 1
    assert found["events"] == found["validations"] == []


def test_numbers_that_json_does_not_know_are_none(tmp_path):
    tmp_path.joinpath(METRICS_FILE).write_text(
        '{"event": "update", "time": 1, "step": 3, "loss": NaN, "learning_rate": 1e999, '
        '"tokens_per_second": -Infinity}\n'
        '{"event": "validation", "step": 3, "bleu": Infinity, "loss": 1' + "0" * 400 + "}\n"
        '{"event": "end", "time": NaN, "step": 12, "loss": -2.5}\n'
    )
    found = read_run(tmp_path, 0, "")
    assert found["points"] == [[3, 1, *[None] * 5]]
    assert (found["validations"][0]["bleu"], found["validations"][0]["loss"]) == (None, None)
    assert found["events"] == [{"event": "end", "time": None, "step": 12, "loss": -2.5}]
    json.dumps(found, allow_nan=False)


def test_values_of_other_kinds_are_left_out(tmp_path):
    deep = [[]]
    for _ in range(400):
        deep = [deep]
    write(
        tmp_path,
        update(1, loss=deep),
        {"event": "validation", "step": "x", "sample": ["a", "b"]},
        {"event": "validation", "step": 2, "sample": ["a", "b", 3]},
        {"event": "validation", "step": 3, "probes": 3},
        {"event": "validation", "step": 4, "probes": [["a", "b", "c"], ["a", "b", []], "abc", 3]},
        {"event": "start", "time": 1.0, "more": {"deep": deep}},
    )
    found = read_run(tmp_path, 0, "")
    assert found["points"][0][:3] == [1, 101.0, None]
    assert [(each["step"], each["probes"]) for each in found["validations"]] == [
        (None, []), (2, []), (3, []), (4, [["a", "b", "c"]]),
    ]  # fmt: skip
    assert found["events"] == [{"event": "start", "time": 1.0}]


def test_what_is_no_log_is_named_and_not_waited_for(tmp_path):
    for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir)):
        (tmp_path / name).mkdir()
        make(tmp_path / name / METRICS_FILE)
        with pytest.raises(FolderError, match=r"metrics\.jsonl: is a folder, pipe or device"):
            read_run(tmp_path / name, 0, "")
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / METRICS_FILE).symlink_to(METRICS_FILE)
    with pytest.raises(FolderError, match=r"metrics\.jsonl: cannot be read \(.*\); let the server"):
        read_run(tmp_path / "round", 0, "")


def test_long_logs_come_in_parts_and_thinned(tmp_path, monkeypatch):
    write(tmp_path, *(update(step) for step in range(1, 501)))
    monkeypatch.setattr(page_runs, "MOST_POINTS", 100)
    found = read_run(tmp_path, 0, "")
    steps = [point[0] for point in found["points"]]
    assert len(steps) == 100
    assert steps[-1] == 500
    assert not found["isMore"]
    monkeypatch.setattr(page_runs, "MOST_BYTES", 10_000)
    monkeypatch.setattr(page_runs, "MOST_POINTS", 1000)
    seen, offset, token, is_more = [], 0, "", True
    while is_more:
        part = read_run(tmp_path, offset, token)
        seen += [point[0] for point in part["points"]]
        offset, token, is_more = part["offset"], part["token"], part["isMore"]
    assert seen == list(range(1, 501))


def test_folders_of_runs_are_opened(tmp_path):
    for name in ("b", "a"):
        write(tmp_path / name, update(1))
    (tmp_path / "new").mkdir()
    assert list(find_runs([tmp_path])) == ["a", "b"]
    assert list(find_runs([tmp_path / "b", tmp_path / "b", tmp_path / "new"])) == ["b", "new"]


def test_names_tell_runs_apart(tmp_path):
    paths = [tmp_path / "one" / "run", tmp_path / "two" / "run", tmp_path / "two" / "other"]
    assert list(name_runs(paths)) == ["one/run", "two/run", "two/other"]
    assert list(name_runs(paths[1:])) == ["run", "other"]
    assert name_runs([]) == {}


def test_what_is_no_folder_is_named(tmp_path):
    with pytest.raises(
        FolderError, match=r"none: is no folder; name the --out of “dragoman train”"
    ):
        WatchedRuns([tmp_path / "none"])


def test_names_are_in_natural_order(tmp_path):
    for name in ("seed-10", "seed-2", "Seed-1", "b"):
        write(tmp_path / name, update(1))
    assert list(find_runs([tmp_path])) == ["b", "Seed-1", "seed-2", "seed-10"]


def numbers_of(runs):
    return {run.name: run.number for run in runs.list_runs()}


def test_runs_that_begin_later_are_found_and_others_keep_their_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(page_runs, "LOOK_EVERY", -1.0)
    runs = WatchedRuns([tmp_path])
    assert numbers_of(runs) == {tmp_path.name: 0}  # a run is about to begin there, or in it
    write(tmp_path / "seed-2", update(9))
    write(tmp_path / "seed-10", update(1))
    assert numbers_of(runs) == {"seed-2": 2, "seed-10": 1}  # in the order in which they began
    write(tmp_path / "seed-1", update(0.5))
    assert list(numbers_of(runs).items()) == [("seed-1", 3), ("seed-2", 2), ("seed-10", 1)]
    # Whoever starts the server anew sees them in the order in which they began.
    assert numbers_of(WatchedRuns([tmp_path])) == {"seed-1": 0, "seed-10": 1, "seed-2": 2}


def test_folders_are_not_searched_at_every_request(tmp_path, monkeypatch):
    write(tmp_path / "a", update(1))
    monkeypatch.setattr(page_runs, "LOOK_EVERY", 1e9)
    runs = WatchedRuns([tmp_path])
    write(tmp_path / "b", update(1))
    assert list(numbers_of(runs)) == ["a"]


def test_folder_that_is_gone_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(page_runs, "LOOK_EVERY", -1.0)
    write(tmp_path / "a", update(1))
    runs = WatchedRuns([tmp_path])
    (tmp_path / "a" / METRICS_FILE).unlink()
    (tmp_path / "a").rmdir()
    write(tmp_path / "b", update(1))
    assert numbers_of(runs) == {"b": 1}


def test_configuration_is_read_flat(tmp_path):
    before = read_run(tmp_path, 0, "")["facts"]
    (tmp_path / "config.toml").write_text("seed = 3\n[model]\npositions = 'none'\nscaled = false\n")
    assert read_run(tmp_path, 0, "")["facts"] != before
    assert read_run_facts(tmp_path) == {
        "options": {"seed": "3", "model.positions": "none", "model.scaled": "false"},
        "rates": None,
    }
    for damaged in (
        b"\xff",
        b"a = [",
        b"[a]\n[a]\n",
        b"a = 'x" + b"x" * page_runs.MOST_FACTS + b"'",
    ):
        (tmp_path / "config.toml").write_bytes(damaged)
        assert read_run_facts(tmp_path)["options"] == {}


def test_learning_rate_test_is_read(tmp_path):
    found = analyse_curve([5.0 - index / 20 for index in range(60)], has_diverged=True)
    folder = tmp_path / "test"
    folder.mkdir()
    (folder / "learning-rate.json").write_text(json.dumps(dataclasses.asdict(found)))
    assert list(find_runs([tmp_path])) == ["test"]
    rates = read_run_facts(folder)["rates"]
    assert rates["rates"] == list(found.rates)
    assert (rates["suggested"], rates["hasDiverged"]) == (found.suggested, True)
    plain = dataclasses.asdict(found)
    changes = ({"turning": "x"}, {"losses": [1.0]}, {"rates": [None] * 60}, {"losses": 3},
               {"steepest": 1e999})  # fmt: skip
    for broken in ([1], {}, *(plain | change for change in changes)):
        (folder / "learning-rate.json").write_text(json.dumps(broken))
        assert read_run_facts(folder)["rates"] is None
