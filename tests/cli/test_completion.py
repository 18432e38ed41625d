"""The verb “completion”: the scripts are run by the shells themselves."""

import shlex
import shutil
import subprocess

import pytest

from dragoman.cli.command import build_parser, main
from dragoman.cli.completion import SHELLS, list_commands
from dragoman.cli.model_verbs.train import TOPICS
from dragoman.cli.verb_table import VERBS
from dragoman.models.families import ModelOptions
from dragoman.options import section_kinds, tag_of

CALL = """
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_dragoman
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FAMILIES = {tag_of(kind) for kind in section_kinds(ModelOptions)}


def is_there(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The script for each shell, in a file."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        with pytest.MonkeyPatch.context() as patch, (folder / shell).open("w") as file:
            patch.setattr("sys.stdout", file)
            main(["completion", shell])
    return folder


@pytest.fixture(params=[pytest.param(shell, marks=is_there(shell)) for shell in SHELLS])
def complete(request, scripts):
    """Complete a command line in a shell: what it offers for the last word."""
    shell = request.param

    def run(line):
        words = shlex.split(line) + ["", ""][: line.endswith(" ")]
        source = f"source {scripts / shell}"
        if shell == "fish":
            call = f"complete -C {shlex.quote(line)}"
        else:
            call = CALL.format(words=shlex.join(words))
        lines = {
            "bash": ["bash", "--norc", "-c", f"{source}\n{call}"],
            "zsh": ["zsh", "-f", "-c", f"compdef() {{ :; }}; {source}\nemulate sh\n{call}"],
            "fish": ["fish", "--no-config", "-c", f"{source}\n{call}"],
        }
        done = subprocess.run(
            lines[shell], capture_output=True, text=True, check=False, cwd=scripts
        )
        assert not done.stderr
        return {each.partition("\t")[0] for each in done.stdout.splitlines()} - {""}

    run.shell = shell
    return run


def test_verbs_and_what_is_below_them(complete):
    assert complete("dragoman ") >= set(VERBS)
    assert complete("dragoman tr") == {"train", "translate"}
    assert complete("dragoman data b") == {"builtin"}
    assert complete("dragoman paper sc") == {"scale", "scores"}
    assert complete("dragoman completion ") == set(SHELLS)


def test_options(complete):
    assert complete("dragoman train --fam") == {"--family"}
    assert complete("dragoman train --out data --res") == {"--resume"}
    assert complete("dragoman train --source a b --no-j") == {"--no-joint"}
    assert complete("dragoman data builtin --held") == {"--held-out"}


def test_choices(complete):
    assert complete("dragoman train --family ") == FAMILIES
    assert complete("dragoman train --dropout 0.1 --family lu") == {"luong"}
    assert complete("dragoman translate m --precision int") == {"int8"}
    assert complete("dragoman train --clip-norm o") == {"off"}
    assert complete("dragoman train --batch-tokens a") == {"auto"}
    assert complete("dragoman train --help ") == {"all", *TOPICS.groups}


def test_files_where_there_is_nothing_else(complete):
    # What bash and zsh complete by themselves where the script offers nothing.
    expected = {"bash", "fish", "zsh"} if complete.shell == "fish" else set()
    for line in ("train --source ", "translate ", "train --source a ", "train --subwords "):
        assert complete(f"dragoman {line}") == expected


@is_there("bash")
def test_a_value_after_an_equals_sign(scripts):
    call = CALL.format(words="dragoman train --family = lu")
    done = subprocess.run(
        ["bash", "--norc", "-c", f"source {scripts / 'bash'}\n{call}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["luong"]


def test_every_option_of_every_verb_is_listed(scripts):
    text = (scripts / "fish").read_text()
    commands = {each.words: each for each in list_commands(build_parser())}
    assert {words[0] for words in commands if words} == set(VERBS)
    for verb in VERBS:
        known = build_parser(verb)._actions[-1].choices[verb]._option_string_actions
        listed = {flag for option in commands[verb,].options for flag in option.names}
        assert listed == set(known)
        for flag in listed - {"-h"}:
            assert f" -l {flag[2:]}" in text


def test_complains_of_another_shell(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "tcsh"])
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
