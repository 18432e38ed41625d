"""The verb “watch”."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import httpx
import pytest

from dragoman.cli.command import main
from dragoman.cli.model_verbs import watch


def fail(capsys, *words) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def test_watch_serves_runs_until_it_is_stopped(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    event = {"event": "update", "time": 1.0, "step": 7, "loss": 2.0}
    (run / "metrics.jsonl").write_text(json.dumps(event) + "\n")
    command = [sys.executable, "-m", "dragoman", "watch", str(tmp_path), "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout.readline() == f"run: {run.resolve()}\n"
        url, _, view = process.stdout.readline().strip().partition("#")
        assert view == "view=training"
        told = json.load(urllib.request.urlopen(f"{url}page/api/page", timeout=30))
        assert (told["runs"], told["models"]) == ([{"number": 0, "name": "run"}], [])
        points = json.load(urllib.request.urlopen(f"{url}page/api/runs/0"))["points"]
        assert points[0][0] == 7
        assert b"Dragoman" in urllib.request.urlopen(url).read()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (0, "")
    finally:
        process.kill()
        process.communicate()


def test_watch_warns_of_an_open_door_and_knows_its_names(tmp_path):
    command = [sys.executable, "-m", "dragoman", "watch", str(tmp_path), "--port", "0"]
    command += ["--no-browser", "--host", "0.0.0.0", "--allow-host", "runs.example"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        port = process.stdout.readline().partition("#")[0].rstrip("/").rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/page/api/page"
        for host, status in (("runs.example", 200), ("evil.example", 421)):
            assert httpx.get(url, headers={"Host": host}, timeout=30).status_code == status
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert said == "dragoman: warning: whoever can reach this machine can see the runs\n"
    finally:
        process.kill()
        process.communicate()


def test_watch_names_what_is_no_run(tmp_path, capsys):
    error = fail(capsys, "watch", tmp_path / "none")
    assert "none: is no folder; name the --out of “dragoman train”" in error


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("darwin", {}, True),
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
    ],
)
def test_browser_is_opened_only_where_there_is_a_screen(
    monkeypatch, platform, environment, expected
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert watch._has_screen() is expected


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from dragoman.cli.command import main\n"
        "try: main(['watch', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'starlette', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
