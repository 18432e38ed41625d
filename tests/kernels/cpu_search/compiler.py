"""Whoever imports this is skipped where nothing can be compiled, and says so."""

import pytest

from dragoman.kernels.processor import can_compile

if not can_compile():
    pytest.skip("needs Numba", allow_module_level=True)
