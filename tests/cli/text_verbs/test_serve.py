"""“dragoman serve”, as a process of its own, and all that the guide says of it."""

import contextlib
import http.client
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from tests.cli.command_line import fail
from tests.serving.small_service import copy_folder
from tests.serving.state.postgres_cluster import cluster  # noqa: F401

from dragoman.cli.command import build_parser, main
from dragoman.cli.flags import check_extra
from dragoman.errors import OptionError
from dragoman.serving.documents.document_store import PREFIX
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


class Process:
    """A server in a process of its own."""

    def __init__(self, *words, cwd=None, processes=0):
        words = [*map(str, words), "--device", "cpu", "--processes", str(processes)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("http"):
                break
        else:
            raise AssertionError(self.process.stderr.read())
        self.url = self.lines[-1]
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *arguments):
        self.process.kill()
        self.process.communicate()

    def ask(self, connection, text, **more):
        body = json.dumps({"q": text, "source": "en", "target": "fr"} | more)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def end(self):
        """Stop it as an administrator would, and give its status and last words."""
        self.process.send_signal(signal.SIGTERM)
        _, words = self.process.communicate(timeout=30)
        return self.process.returncode, words


def test_serves_and_says_where(tiny_folder):
    with Process("serve", tiny_folder.path, "--port", "0") as server:
        assert server.lines == ["tiny: en → fr", f"http://127.0.0.1:{server.port}/"]
        assert server.ask(server.connect(), "A dog.")[0] == 200
        assert server.end() == (0, "")


def test_warns_of_an_open_door(tiny_folder):
    with Process("serve", tiny_folder.path, "--port", "0", "--host", "0.0.0.0") as server:
        _, words = server.end()
    assert words == (
        "dragoman: warning: whoever can reach this machine can use the server; see --keys\n"
    )


def test_wants_a_key_where_there_are_keys(tiny_folder, tmp_path):
    keys = tmp_path / "keys.toml"
    keys.write_text('[alice]\nkey = "alice-secret"\nrequests_per_minute = 2\n')
    with Process("serve", tiny_folder.path, "--port", "0", "--keys", keys) as server:
        connection = server.connect()
        assert server.ask(connection, "A dog.")[0] == 400
        assert server.ask(connection, "A dog.", api_key="nonsense")[0] == 403
        statuses = [server.ask(connection, "A dog.", api_key="alice-secret")[0] for _ in "abc"]
        assert statuses == [200, 200, 429]
        status, words = server.end()
    assert (status, words) == (0, "")
    assert "alice-secret" not in "".join(server.lines)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_keys_are_read_again_on_sighup(tiny_folder, tmp_path):
    keys = tmp_path / "keys.toml"
    keys.write_text('[alice]\nkey = "alice-secret"\n')
    with Process("serve", tiny_folder.path, "--port", "0", "--keys", keys) as server:
        connection = server.connect()

        def read_again(text):
            keys.write_text(text)
            server.process.send_signal(signal.SIGHUP)
            return server.process.stderr.readline()

        said = read_again('[bob]\nkey = "bob-secret"\n')
        assert said == f"dragoman: {keys}: read again\n"
        assert server.ask(connection, "A dog.", api_key="alice-secret")[0] == 403
        assert server.ask(connection, "A dog.", api_key="bob-secret")[0] == 200
        said = read_again('[bob]\nkey = "short"\n')
        assert said == (
            f"dragoman: {keys}: [bob]: key must be a string of at least 8 characters; the keys "
            "stay as they were\n"
        )
        assert server.ask(connection, "A dog.", api_key="bob-secret")[0] == 200
        keys.unlink()
        server.process.send_signal(signal.SIGHUP)
        assert "the keys stay as they were" in server.process.stderr.readline()
        assert server.end() == (0, "")


def test_a_state_that_cannot_be_used_is_explained_before_anything_is_served(
    tiny_folder, tmp_path, capsys
):
    (tmp_path / "file").write_text("no folder")
    line = fail(capsys, "serve", tiny_folder.path, "--port", "0", "--state", tmp_path / "file")
    assert line.endswith(f"{tmp_path / 'file'}: is not a folder; choose another --state")
    nowhere = "postgresql://dragoman:s3cret@127.0.0.1:1/nowhere"
    line = fail(capsys, "serve", tiny_folder.path, "--port", "0", "--state", nowhere)
    assert "postgresql://127.0.0.1/nowhere: cannot be used (" in line
    assert "s3cret" not in line


def test_is_known_by_the_names_that_it_is_given(tiny_folder):
    names = ["--allow-host", "one.example", "--allow-host", "two.example"]
    with Process("serve", *names, tiny_folder.path, "--port", "0") as server:
        statuses = []
        for host in ("one.example", "two.example:80", "three.example"):
            connection = server.connect()
            connection.request("GET", "/languages", headers={"Host": host})
            statuses.append(connection.getresponse().status)
        assert statuses == [200, 200, 421]
        assert server.end() == (0, "")


def test_nonsense_does_not_fill_the_log(tiny_folder):
    with Process("serve", tiny_folder.path, "--port", "0") as server:
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                connection.sendall(b"nonsense " * 100 + b"\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 400")
        status, words = server.end()
    said = ["Invalid HTTP request received."] * 10
    said[-1] += " (more such lines are left out for a minute)"
    assert (status, words.splitlines()) == (0, said)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders")
def test_a_new_server_sweeps_what_a_killed_one_left(tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Process("serve", tiny_folder.path, "--port", "0") as server:
        form = {"file": ("a.txt", b"A dog.")}
        fields = {"source": "en", "target": "fr"}
        answer = httpx.post(f"{server.url}translate_file", files=form, data=fields, timeout=30)
        assert answer.status_code == 200
        assert len(list(tmp_path.glob(f"{PREFIX}*/*"))) == 1
        with Process("serve", tiny_folder.path, "--port", "0"):  # beside it: not its to sweep
            assert httpx.get(answer.json()["translatedFileUrl"]).status_code == 200
        server.process.kill()
        server.process.wait()
    assert len(list(tmp_path.glob(f"{PREFIX}*/*"))) == 1
    with Process("serve", tiny_folder.path, "--port", "0"):
        assert list(tmp_path.glob(f"{PREFIX}*")) == []


class Told(NamedTuple):
    """When a request was sent and answered, and the status; None if there was no answer."""

    began: float
    ended: float
    status: int | None


class RunningBatch:
    """Clients that ask one thing after another, and what came of it."""

    def __init__(self, server, clients):
        self.server = server
        self.answers = []
        self.is_over = False
        self.threads = [threading.Thread(target=self._enqueue, args=(n,)) for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def _enqueue(self, number):
        connection = self.server.connect()
        count = 0
        while not self.is_over:
            began = time.monotonic()
            count += 1
            try:
                status = self.server.ask(connection, f"A dog sees {number} and {count}.")[0]
            except (OSError, http.client.HTTPException):
                status = None
                connection.close()
                time.sleep(0.02)
            self.answers.append(Told(began, time.monotonic(), status))

    def wait_for(self, count):
        until = time.monotonic() + 60
        while len(self.answers) < count:
            assert time.monotonic() < until
            time.sleep(0.01)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(30)


def test_sigterm_under_load_loses_no_accepted_request(tiny_folder):
    flags = ["--port", "0", "--cache-characters", "0"]
    with Process("serve", tiny_folder.path, *flags, processes=2) as server:
        load = RunningBatch(server, 16)
        load.wait_for(32)
        told = time.monotonic()
        assert server.end() == (0, "")
        ended = time.monotonic()
        load.end()
    sent_before = [each for each in load.answers if each.began < told]
    # Whoever was not accepted any more is told so; nobody is left without an answer.
    assert {each.status for each in sent_before} <= {200, 503}
    assert any(each.status == 200 and each.ended > told for each in sent_before)
    sent_after = {each.status for each in load.answers if told < each.began < ended}
    assert sent_after <= {200, 503, None}


@pytest.mark.slow
def test_a_process_that_is_killed_costs_nobody_an_answer(tiny_folder):
    flags = ["--port", "0", "--cache-characters", "0"]
    with Process("serve", tiny_folder.path, *flags, processes=1) as server:
        load = RunningBatch(server, 8)
        load.wait_for(16)
        (child,) = list_children(server.process.pid)
        os.kill(child, signal.SIGKILL)
        load.wait_for(len(load.answers) + 24)
        load.end()
        assert {each.status for each in load.answers} == {200}
        assert list_children(server.process.pid) != [child]
        status, words = server.end()
    assert status == 0
    assert "ProcessEndedError" in words


def end_process(process):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def gone_within(process, seconds):
    """Say whether a process ends in time; one that has ended may still be waited for by another."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        listed = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
        ).stdout.strip()
        if not listed or listed.startswith("Z"):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("becomes", ["hung", "busy", "dead"])
def test_sigterm_while_a_process_is_busy_dead_or_hung(tiny_folder, becomes):
    """Within its limit the server ends, everybody is answered, and no process is left."""
    limit = 2 if becomes == "hung" else 30
    flags = ["--port", "0", "--cache-characters", "0", "--stop-seconds", str(limit)]
    with (
        Process("serve", tiny_folder.path, *flags, processes=1) as server,
        contextlib.ExitStack() as after,
    ):
        (child,) = list_children(server.process.pid)
        after.callback(end_process, child)
        os.kill(child, signal.SIGSTOP)
        load = RunningBatch(server, 4)
        time.sleep(0.5)  # until they are accepted
        load.is_over = True
        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None
        children = list_children(server.process.pid)
        if becomes != "hung":
            os.kill(child, signal.SIGCONT if becomes == "busy" else signal.SIGKILL)
        server.process.communicate(timeout=limit + 10)
        taken = time.monotonic() - told
        load.end()
    assert server.process.returncode == 0
    assert taken < limit + 4
    assert [each.status for each in load.answers] == [503 if becomes == "hung" else 200] * 4
    assert all(gone_within(each, 1) for each in children)


def list_children(process):
    """List the processes that a process has started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "99999"], "port is 99999: must be from 0 to 65535"),
        (["--host", "no such host"], "host is “no such host”"),
        (["--keys", "nowhere.toml"], "nowhere.toml"),
        (["--broken", "nowhere"], "nowhere/broken.json: cannot be read"),
        (["--max-text", "3"], "did you mean “--max-texts”"),
    ],
)
def test_bad_options_are_explained_before_anything_is_loaded(tmp_path, capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        main(["serve", str(tmp_path), *words])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_missing_package_is_named(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    with pytest.raises(OptionError) as caught:
        check_extra("serve")
    assert str(caught.value) == 'serve needs uvicorn: pip install "dragoman[serve]"'


def commands():
    blocks = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("dragoman")]


@pytest.fixture(scope="module")
def workplace(tiny_folder, tmp_path_factory):
    """Give a folder with all that the guide speaks of."""
    folder = tmp_path_factory.mktemp("guide")
    shutil.move(copy_folder(tiny_folder.path, folder, "de", "en"), folder / "my-model")
    shutil.move(copy_folder(tiny_folder.path, folder, "en", "fr"), folder / "other-model")
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (folder / "keys.toml").write_text(toml, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_commands_of_the_guide_run(command, workplace, request, monkeypatch):
    monkeypatch.chdir(workplace)  # where the models of the command are
    words = shlex.split(command)[1:]
    assert build_parser().parse(words).parser.prog == "dragoman serve"
    if "postgresql://" in command:
        url = request.getfixturevalue("cluster").make_database()
        words = [url if word.startswith("postgresql://") else word for word in words]
    if "--port" in words:
        del words[words.index("--port") : words.index("--port") + 2]
    with Process(*words, "--port", "0", cwd=workplace) as server:
        connection = server.connect()
        connection.request("GET", "/languages")
        assert connection.getresponse().status == 200
        assert server.end()[0] == 0


def test_clients_of_the_guide_translate(workplace):
    programs = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(programs) == 3
    with Process("serve", "my-model", "--port", "0", cwd=workplace) as server:
        for program in programs:
            exec(program.replace("127.0.0.1:5000", f"127.0.0.1:{server.port}"), {})
        connection = server.connect()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    assert re.search(r'dragoman_requests_total\{.*status="200"\} 1.0', text)
    assert not re.search(r'dragoman_requests_total\{.*status="[45]..', text)


def test_every_option_that_the_guide_names_is_there(tmp_path):
    parser = build_parser().parse(["serve", str(tmp_path)]).parser
    known = {flag for action in parser._actions for flag in action.option_strings}
    named = set(re.findall(r"`(--[a-z-]+)`", GUIDE))
    assert len(named) > 10
    assert named <= known


def test_every_figure_that_the_guide_names_is_there_and_no_other():
    written = Metrics().write().decode()
    known = set(re.findall(r"# HELP (\w+) ", written))
    named = set(re.findall(r"`(dragoman_\w+)`", GUIDE))
    assert named == {name for name in known if not name.endswith("_created")}


def test_the_defaults_that_the_guide_names_are_those():
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "": 1}
    rows = re.findall(r"\| `--([a-z-]+)` \| ([\d,]+) ?(\w*) \|", GUIDE)
    assert len(rows) == 9
    for name, number, unit in rows:
        value = getattr(ServeOptions(), name.replace("-", "_"))
        assert value == int(number.replace(",", "")) * units[unit], name


@pytest.mark.slow
def test_serves_installed_models_by_name_or_all(tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    for name in ("one", "two"):
        shutil.copytree(tiny_folder.path, tmp_path / "models" / name)
    with Process("serve", "two", "--port", "0", cwd=tmp_path) as server:
        assert server.lines[:-1] == ["two: en → fr"]
    with Process("serve", "--port", "0", cwd=tmp_path) as server:
        assert server.lines[:-1] == ["one: en → fr", "two: en → fr"]


def test_without_models_there_is_nothing_to_serve(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    line = fail(capsys, "serve", "--port", "0")
    assert f"serve: no models in {tmp_path / 'models'}" in line
    assert "“dragoman pull de-en”" in line
