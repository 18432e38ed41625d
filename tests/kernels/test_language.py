"""What kernels share, life without Triton, and compilation for a GPU that is not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.kernels import language

WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None  # importing it fails
import torch
from dragoman.kernels import language
from dragoman.models.build import build_model
assert not language.has_triton
assert not language.uses_kernels(torch.ones(1))
"""


def test_everything_is_there_without_triton():
    subprocess.run([sys.executable, "-c", WITHOUT_TRITON], check=True)


def test_kernels_are_for_cuda():
    assert not language.uses_kernels(torch.ones(1))


@pytest.mark.parametrize(("number", "expected"), [(1, 16), (16, 16), (17, 32), (512, 512)])
def test_blocks_are_powers_of_two(number, expected):
    assert language.next_power(number) == expected


def test_products_are_computed_as_autocast_says():
    states = torch.ones(2)
    assert language.working_type(states) == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert language.working_type(states) == torch.bfloat16
    assert language.working_type(torch.ones(2, device="meta")) == torch.float32


def test_rows_are_summed(device, close):
    partial = torch.randn(150, 37, device=device)
    close(language.sum_rows(partial), partial.double().sum(0), 1e-6)


def test_a_seed_is_drawn_from_pytorch():
    cpu = torch.device("cpu")
    torch.manual_seed(1)
    first, second = language.draw_seed(cpu), language.draw_seed(cpu)
    assert first != second
    torch.manual_seed(1)
    assert language.draw_seed(cpu) == first


# The interpreter accepts what the compiler refuses. Triton brings the assembler along, so the
# compiler can be asked on any machine.
COMPILE = '''
import inspect, sys
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from dragoman.kernels import language
from dragoman.kernels.cuda_search import beam_attention, beam_slots, beam_step, best_tokens
from dragoman.kernels.training import (
    add_and_norm, attention_blocks, attention_tiles, consistent_cross_entropy, cross_entropy,
    linear, token_embedding,
)

HALF = """query key value found grad query_grad key_grad value_grad states update normed states_grad
    update_grad other logits second out passed added"""
FULL = "weight bias statistics log_sums deltas losses partial total words positions words_grad sums"
WHOLE = "query_groups key_groups begin first end seen_first seen_end targets ids places"
TYPES = {
    **dict.fromkeys(HALF.split(), "*bf16"),
    **dict.fromkeys(FULL.split(), "*fp32"),
    **dict.fromkeys(WHOLE.split(), "*i32"),
    **dict.fromkeys("seed order starts".split(), "*i64"),
    **dict.fromkeys("scale epsilon smoothing keep_scale".split(), "fp32"),
    "threshold": "i64",
}
HEADS = dict(
    KEY_DIM=64, VALUE_DIM=64, KEY_BLOCK=64, VALUE_BLOCK=64, PRECISION="tf32", DROPS=True
)
NORM = dict(DIM=512, BLOCK=512, ROWS=4, IS_CENTRED=True, DROPS=True)


def stretches(kernel, tuning):
    sizes = dict(HEADS, BLOCK=tuning.block, INNER=tuning.inner)
    return kernel, sizes, dict(num_warps=tuning.num_warps, num_stages=tuning.num_stages)


tiles = dict(HEADS, TILE=attention_tiles.TILE)
beams = dict(BEAMS=4, BEAM_BLOCK=4)
shape = beam_attention.Heads(8, 64, 64, 1.0)
slots = beam_attention.shape_of(torch.empty(0, dtype=torch.float16), 4, shape)
one_warp = dict(num_warps=slots.pop("num_warps"))
blocks = dict(BLOCK=best_tokens.BLOCK, BLOCKS=best_tokens.BLOCKS)
choice = dict(blocks, COUNT=8, COUNT_BLOCK=8, PARTS_BLOCK=16, MAXIMA_BLOCK=1024)
places = dict(LIMITS=beam_slots.LIMITS, PREFIXES=beam_slots.PREFIXES)
ends = dict(END_SHARE=beam_step.END_SHARE, END_MORE=beam_step.END_MORE)
advance = dict(beams, **places, **ends, COUNT=8, CANDIDATES=32, TILE=beam_step.TILE)
KERNELS = [
    (attention_tiles._forward_kernel, tiles, dict(num_warps=attention_tiles.FORWARD_WARPS)),
    (attention_tiles._backward_kernel, tiles, dict(num_warps=attention_tiles.BACKWARD_WARPS)),
    stretches(attention_blocks._forward_kernel, attention_blocks.FORWARD),
    stretches(attention_blocks._query_grad_kernel, attention_blocks.QUERY_GRAD),
    stretches(attention_blocks._memory_grad_kernel, attention_blocks.MEMORY_GRAD),
    *(
        (kernel, dict(NORM, HAS_UPDATE=has_update, **{flag: has_sum}, **more), {})
        for kernel, flag, more in (
            (add_and_norm._forward_kernel, "KEEPS_SUM", {}),
            (add_and_norm._backward_kernel, "HAS_SUM", dict(HAS_OTHER=True)),
        )
        for has_update, has_sum in ((True, False), (True, True), (False, True))
    ),
    (linear._sum_kernel, dict(ROWS=32, COLUMNS=128, IS_RECTIFIED=True), {}),
    (cross_entropy._gradient_kernel, dict(BLOCK=4096, VECTOR=8), dict(num_warps=8)),
    (consistent_cross_entropy._gradients_kernel, dict(BLOCK=4096), dict(num_warps=8)),
    (token_embedding._forward_kernel, dict(DIM=512, BLOCK=512, DROPS=True, HAS_POSITIONS=True), {}),
    (token_embedding._backward_kernel, dict(DIM=512, BLOCK=512, ROWS=16, DROPS=True), {}),
    (language._sum_rows_kernel, dict(ROWS=64, COLUMNS=16), {}),
    (beam_attention._beam_kernel, dict(slots, LANES=4, WORDS=8), one_warp),
    (beam_attention._source_kernel, dict(slots, WORDS=16), one_warp),
    (beam_slots._admit_kernel, beams, dict(num_warps=1)),
    (best_tokens._read_kernel, blocks, dict(num_warps=best_tokens.NUM_WARPS)),
    (best_tokens._choose_kernel, choice, dict(num_warps=best_tokens.NUM_WARPS)),
    (beam_step._advance_kernel, advance, dict(num_warps=1)),
]
# What decoding has, where it is of another type than in training.
SCORES = "logits logs normalisers maxima parts alive scores end_logs sums penalties"
COUNTS = """words positions newest sources slot_sentences facts queue ends end_lengths end_beams
    said parents"""
DECODING = {
    **dict.fromkeys("joined past memory query found".split(), "*fp16"),
    **dict.fromkeys(SCORES.split(), "*fp32"),
    **dict.fromkeys(COUNTS.split(), "*i32"),
    "standing": "*u8", "ancestors": "*u8", "is_done": "*i8", "scale": "fp32",
}
for kernel, constants, options in KERNELS:
    module = kernel.__module__.rsplit(".", 1)[1]
    known = DECODING if module.startswith("be") else TYPES
    types = {name: known.get(name, "i32") for name in kernel.arg_names}
    if kernel is token_embedding._forward_kernel:
        types["sums"] = "*bf16"
    if kernel is consistent_cross_entropy._gradients_kernel:
        weights = "first_weight second_weight apart_weight back_weight"
        types |= {"first": "*bf16", "targets": "*i64", **dict.fromkeys(weights.split(), "fp32")}
    signature = {name: "constexpr" if name in constants else types[name] for name in types}
    places = [place for place, name in enumerate(signature) if signature[name].startswith("*")]
    source = ASTSource(
        kernel, signature=signature, constexprs=constants,
        attrs={(place,): [["tt.divisibility", 16]] for place in places},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    assert made.asm["cubin"]
    print(module, kernel.__name__, *constants.values())
'''


FOLDERS = (".", "training", "cuda_search")


def test_every_kernel_compiles():
    if not language.has_triton:
        pytest.skip("needs Triton")
    settings = os.environ | {"TRITON_INTERPRET": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPILE],
        env=settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    compiled = set(done.stdout.splitlines())
    assert len(compiled) == len(done.stdout.splitlines())
    assert {" ".join(each.split()[:2]) for each in compiled} == set(_kernels())


def _kernels():
    """Find the kernels that are launched: those whose name says so."""
    folder = Path(language.__file__).parent
    for path in sorted(path for each in FOLDERS for path in folder.glob(f"{each}/*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("def _") and "_kernel(" in line:
                yield f"{path.stem} {line.split('(')[0].removeprefix('def ')}"
