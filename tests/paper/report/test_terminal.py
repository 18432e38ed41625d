"""What is printed: every cell whole, however wide the table."""

from dragoman.paper.report.result import Column, Experiment, Table
from dragoman.paper.report.terminal import print_experiment


def test_everything_is_printed_in_full(capsys):
    headings = [f"a rather long heading, number {index}" for index in range(12)]
    table = Table(
        name="t", title="A table [of sorts]", columns=tuple(map(Column, headings)),
        rows=(tuple(range(1000, 1012)), ("[bold]", *[None] * 11)), notes=("a note :smile:",),
    )  # fmt: skip
    print_experiment(Experiment(title="Title", claim="claim", findings=("found",), tables=(table,)))
    out = capsys.readouterr().out
    for words in (*headings, "A table [of sorts]", "1,011", "[bold]", "a note :smile:", "Title",
                  "The claim: claim", "• found"):  # fmt: skip
        assert words in out
    assert "…" not in out
