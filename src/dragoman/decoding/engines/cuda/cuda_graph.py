"""Work recorded once as a CUDA graph and then launched with a single call."""

from collections.abc import Callable

import torch

WARM_UPS = 3


class CudaGraph:
    """A call without arguments that replays the same kernels on the same tensors.

    Parameters
    ----------
    work : Callable[[], object]
        The work. It must not ask the device anything, and what it computes it must write into
        tensors that stay. It is done a few times at once, so doing it must do no harm.
    device : torch.device
        Where it computes.

    Notes
    -----
    On a CUDA device the work is recorded as a graph, so that starting its many kernels costs the
    host a single call; elsewhere it is simply done. The first times, in which kernels are compiled
    and libraries set up, are spent on a stream of their own, as recording asks.
    """

    def __init__(self, work: Callable[[], object], device: torch.device) -> None:
        self._work = work
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type != "cuda":
            return
        here = torch.cuda.current_stream(device)
        side = torch.cuda.Stream(device)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                work()
        here.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Only this thread must keep still meanwhile: others may be using the device.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            work()
        self._graph = graph

    def __call__(self) -> None:
        """Launch the graph, or run the work where there is none."""
        if self._graph is None:
            self._work()
        else:
            self._graph.replay()
