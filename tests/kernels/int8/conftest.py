"""Compiled functions are tested where they can be compiled."""

from pathlib import Path

from dragoman.kernels.int8.layout import can_compile

ANYWHERE = ("test_layout.py",)
collect_ignore = [
    path.name
    for path in Path(__file__).parent.glob("test_*.py")
    if path.name not in ANYWHERE and not can_compile()
]
