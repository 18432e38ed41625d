"""The precision of matrix products in training; on a CPU chosen by timing."""

import time

import torch

from dragoman.training.options import TrainingOptions

PRODUCT_ROWS, PRODUCT_REPEATS = 2048, 5
ANOTHER_PAYS = 1.2
"""The speed-up from which another precision is chosen."""


def use_onednn(*, is_wanted: bool) -> None:
    """Choose whether oneDNN or PyTorch's default library multiplies float32 matrices on a CPU.

    Notes
    -----
    What PyTorch calls “medium” lets oneDNN round to bfloat16 where that pays. On processors with
    tile registers (AMX) it does, elsewhere its products are those of float32, in another order.
    """
    torch.set_float32_matmul_precision("medium" if is_wanted else "highest")


def choose_precision(options: TrainingOptions, width: int, device: torch.device) -> str:
    """Resolve `precision = auto`; on a CPU by timing matrix products."""
    if options.precision != "auto" or device.type != "cpu":
        return options.precision
    shape = (PRODUCT_ROWS, width)
    states, matrix = torch.randn(shape), torch.randn(4 * width, width)
    exact, plain = _time_product(states, matrix)
    use_onednn(is_wanted=True)
    found, onednn = _time_product(states, matrix)
    use_onednn(is_wanted=False)
    _, half = _time_product(states.bfloat16(), matrix.bfloat16())
    is_exact = torch.allclose(found, exact, rtol=1e-4, atol=1e-3)
    best = "float32-onednn" if is_exact and onednn * ANOTHER_PAYS < plain else "float32"
    full = onednn if best == "float32-onednn" else plain
    return "bfloat16" if half * ANOTHER_PAYS < full else best


def _time_product(states: torch.Tensor, matrix: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Time a matrix product on one core; return the product and the shortest time."""
    times = []
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for _ in range(PRODUCT_REPEATS):
        started = time.perf_counter()
        product = states @ matrix.t()
        times.append(time.perf_counter() - started)
    torch.set_num_threads(num_threads)
    return product, min(times)
