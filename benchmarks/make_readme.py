"""Make benchmarks/README.md from the results: for each figure the newest, with its date."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent

HEAD = """# Measurements

Made by `python benchmarks/make_readme.py` from the files in `results/`; nothing here is typed in by
hand. Each result file names its command, machine, commit and seeds.

| what | figure | value | date | machine |
|---|---|---|---|---|
"""


def make_readme() -> str:
    """Collect the newest figure of each name.

    Returns
    -------
    str
        A Markdown page with a table.
    """
    newest: dict[tuple[str, str], tuple[float, dict]] = {}
    for path in sorted((FOLDER / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for key, value in result["figures"].items():
            newest[result["name"], key] = (value, result)
    rows = [
        f"| {name} | `{key}` | {_show(value)} | {result['date']} | {result['machine']} |"
        for (name, key), (value, result) in sorted(newest.items())
    ]
    return HEAD + "\n".join(rows) + "\n"


def _show(value: float) -> str:
    """Show four digits, and large numbers whole."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(make_readme(), encoding="utf-8")
