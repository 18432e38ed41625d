"""Recorded work does what the work does."""

import pytest
import torch

from dragoman.decoding.engines.cuda.cuda_graph import CudaGraph


def test_elsewhere_the_work_is_simply_done():
    total = torch.zeros(3)
    add = CudaGraph(lambda: total.add_(1), torch.device("cpu"))
    assert total.tolist() == [0, 0, 0]
    add()
    add()
    assert total.tolist() == [2, 2, 2]


@pytest.mark.gpu
def test_a_graph_reads_and_writes_the_same_tensors_each_time():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    given, total = torch.zeros(3, device="cuda"), torch.zeros(3, device="cuda")
    add = CudaGraph(lambda: total.add_(given * 2), torch.device("cuda"))
    given.fill_(5)
    add()
    given.fill_(1)
    add()
    assert total.tolist() == [12, 12, 12]
