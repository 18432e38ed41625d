"""Look for barriers on a page with axe-core, which npm installs for tests alone."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page

_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """async rules => (await axe.run(document, { runOnly: rules })).violations.map(found =>
    `${found.id}: ${found.help}: ${found.nodes.map(node => node.html.slice(0, 160)).join(" | ")}`
)"""


@cache
def read_axe() -> str:
    """Read axe-core, or skip the tests that need it, saying so."""
    npm = shutil.which("npm")
    for more in ([], ["--global"]) if npm else ():
        found = subprocess.run(
            [str(npm), "root", *more], capture_output=True, text=True, check=True
        )
        path = Path(found.stdout.strip()) / "axe-core" / "axe.min.js"
        if path.exists():
            return path.read_text()
    pytest.skip("NO AXE-CORE HERE: barriers were not looked for; npm install --global axe-core")


def find_barriers(page: Page) -> list[str]:
    """List what axe-core finds wrong with what a page shows now."""
    page.evaluate(f"() => {{ if (!window.axe) {{ {read_axe()} }} }}")
    found: list[str] = page.evaluate(_RUN, _RULES)
    return found
