"""Whoever imports this is skipped where nothing can be compiled, and says so."""

import pytest

from dragoman.kernels.int8.layout import can_compile

if not can_compile():
    pytest.skip("needs AVX-512 VNNI and Numba", allow_module_level=True)
