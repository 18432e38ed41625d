"""Fully sharded data parallelism (FSDP2): every worker keeps a shard of each weight.

A layer's weights are gathered while it computes; its gradients, moments and moving average exist
only as shards. Files hold full tensors: they are gathered for writing and sharded when read.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.models.layers.experts import Experts
from dragoman.models.transformer import Transformer
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.updates.distributed import Workers
from dragoman.weights import put_weights, weights_of


def shard_step(step: nn.Module, workers: Workers, device: torch.device) -> None:
    """Shard the weights of a model among the workers.

    Parameters
    ----------
    step : nn.Module
        The model and its loss as one module, with whole weights, the same on all workers. It must
        from now on be used by calling it.
    workers : Workers
        All of them take part.
    device : torch.device
        Where each keeps its share.

    Notes
    -----
    A Transformer is gathered layer by layer. Other families, mixtures of experts, whose routing is
    judged outside of its layer, and training for reward, which searches, or for consistency, which
    reads twice, do not compute layer by layer: their weights are gathered all at once, and only
    gradients and what the optimiser remembers are divided.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    # Keys and values are views that are never changed in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    mesh = init_device_mesh(device.type, (workers.num_workers,))
    model = step.model if isinstance(step, TrainingStep) else None
    has_experts = any(isinstance(each, Experts) for each in step.modules())
    if type(model) is Transformer and not has_experts:
        for layer in model.encoder:
            fully_shard(layer, mesh=mesh)
        for decoder_layer in model.decoder:
            attention = decoder_layer.cross_attention
            fully_shard(attention, mesh=mesh)
            # The model projects the source before it calls the layer.
            register_fsdp_forward_method(attention, "keys_and_values")
            fully_shard(decoder_layer, mesh=mesh)
    fully_shard(step, mesh=mesh)
    for module in step.modules():
        if isinstance(module, FSDPModule):
            # The loss is already divided by the tokens of all workers: sum the gradients, no mean.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def local_shard(tensor: Tensor) -> Tensor:
    """Return this worker's shard of a tensor."""
    return tensor.to_local() if _is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def shard_like(whole: Tensor, like: Tensor) -> Tensor:
    """Move a tensor to the device of another, sharded like the other."""
    if not _is_sharded(like):
        return whole.to(like.device)
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(
        whole.to(like.device),
        like.device_mesh,  # type: ignore[attr-defined]
        like.placements,  # type: ignore[attr-defined]
        src_data_rank=None,
    )


def gather_full(tensors: Mapping[str, Tensor], workers: Workers) -> dict[str, Tensor]:
    """Gather sharded tensors on the first worker.

    Returns
    -------
    dict[str, Tensor]
        On the first worker the whole tensors, those that were divided on the CPU; on the others
        only those that were not. One at a time is whole in a card's memory.
    """
    gathered = {}
    for name, each in tensors.items():
        if not _is_sharded(each):
            gathered[name] = each
            continue
        whole = each.full_tensor()  # type: ignore[attr-defined]
        if workers.is_first:
            gathered[name] = whole.detach().cpu()
    return gathered


@contextmanager
def gathered_model(
    model: nn.Module, copy: nn.Module | None, workers: Workers, device: torch.device
) -> Iterator[None]:
    """Gather the weights of a sharded model into the first worker's copy while the context lasts.

    Parameters
    ----------
    model : nn.Module
        The model, divided or not.
    copy : nn.Module | None
        A whole model of the same shape, on the CPU; the model itself if it is not divided; None
        on the other workers.
    workers : Workers
        All of them take part.
    device : torch.device
        Where the copy is to be used.
    """
    if copy is model:
        yield
        return
    weights = gather_full(weights_of(model), workers)
    if copy is not None:
        put_weights(copy, weights, Path("the divided model"))
        copy.to(device)
    try:
        yield
    finally:
        if copy is not None:
            copy.to("cpu")


def _is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a `DTensor`, without importing the class."""
    return hasattr(tensor, "full_tensor")
