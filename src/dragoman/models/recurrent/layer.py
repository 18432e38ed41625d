"""Run a cell over whole sentences, by a fused kernel where there is one, else in a loop."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman.models.recurrent.cells import Cell, CellState, GRUCell, LSTMCell, RNNCell
from dragoman.shapes import Float, Int, Shaped

# Large enough for a gate to be exactly 0 or 1 in every precision, and finite in all of them.
SHUT = 1e4
# One would do, but matrix units need widths that are multiples of this.
NUM_COLUMNS = 8


class RecurrentLayer(nn.Module):
    """Apply a cell to sentences token by token.

    Parameters
    ----------
    cell : Cell
        What is repeated.

    Notes
    -----
    What is said of a word depends on the words up to it, so padding behind a sentence changes
    nothing before it. At padding the outputs mean nothing.

    Under autocast the fused kernels run in its precision on a GPU; on a CPU, whose kernels in
    bfloat16 not every processor has, they run in that of the weights. In float32 a GPU's kernels
    round products to TF32 unless ``torch.backends.cudnn.allow_tf32`` is off, so they agree with
    the loop to some 5e-4 only.
    """

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self,
        inputs: Float[Tensor, "batch length input_dim"],
        state: CellState | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch length hidden_dim"], CellState]:
        """Process sentences.

        Parameters
        ----------
        inputs : Float[Tensor, "batch length input_dim"]
            What is read at each word.
        state : CellState | None
            What came before, each tensor [batch, hidden_dim]; None: nothing.
        lengths : Int[Tensor, "batch"] | None
            Words of each sentence, at least one; None: as many as there are places, or nobody asks
            for the last state.

        Returns
        -------
        tuple[Float[Tensor, "batch length hidden_dim"], CellState]
            The output h at each word, and the state after the last word of each sentence.
        """
        if state is None:
            state = self.cell.start((len(inputs),), inputs)
        if isinstance(self.cell, GRUCell) and self.cell.reset == "before":
            return run_in_loop(self.cell, inputs, state, lengths)
        return run_fused(self.cell, inputs, state, lengths)


class BidirectionalLayer(nn.Module):
    """Apply one cell from each end of the sentences.

    Parameters
    ----------
    forwards : Cell
        What reads from the beginning.
    backwards : Cell
        What reads from the end.
    """

    def __init__(self, forwards: Cell, backwards: Cell) -> None:
        super().__init__()
        self.forwards = RecurrentLayer(forwards)
        self.backwards = RecurrentLayer(backwards)

    def forward(
        self,
        inputs: Float[Tensor, "batch length input_dim"],
        lengths: Int[Tensor, "batch"],
    ) -> tuple[Float[Tensor, "batch length both_dims"], tuple[CellState, CellState]]:
        """Process sentences.

        Returns
        -------
        tuple[Float[Tensor, "batch length both_dims"], tuple[CellState, CellState]]
            For each word the outputs of both directions, the forward one first; and the last state
            of each direction: at the sentence's end, and at its beginning.
        """
        ahead, last = self.forwards(inputs, lengths=lengths)
        behind, first = self.backwards(reverse_sequences(inputs, lengths), lengths=lengths)
        both = torch.cat([ahead, reverse_sequences(behind, lengths)], dim=-1)
        return both, (last, first)


def reverse_sequences(
    states: Shaped[Tensor, "batch length *rest"], lengths: Int[Tensor, "batch"]
) -> Shaped[Tensor, "batch length *rest"]:
    """Reverse each sentence within its length; padding stays in place."""
    places = torch.arange(states.size(1), device=states.device)
    ends = lengths[:, None]
    sources = torch.where(places < ends, ends - 1 - places, places)
    rows = torch.arange(len(states), device=states.device)[:, None]
    return states[rows, sources]


def run_in_loop(
    cell: Cell,
    inputs: Float[Tensor, "batch length input_dim"],
    state: CellState,
    lengths: Int[Tensor, "batch"] | None,
) -> tuple[Float[Tensor, "batch length hidden_dim"], CellState]:
    """Apply a cell token by token."""
    outputs = []
    for place, projected in enumerate(cell.project(inputs).unbind(1)):
        after = cell(projected, state)
        if lengths is not None:
            goes_on = (lengths > place)[:, None]
            after = tuple(
                torch.where(goes_on, new, old) for new, old in zip(after, state, strict=True)
            )
        state = after
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state


def run_fused(
    cell: Cell,
    inputs: Float[Tensor, "batch length input_dim"],
    state: CellState,
    lengths: Int[Tensor, "batch"] | None,
) -> tuple[Float[Tensor, "batch length hidden_dim"], CellState]:
    """Apply a cell to all tokens by one call of PyTorch's (or cuDNN's) kernel.

    Notes
    -----
    The kernels have a second bias, which is given as zero. They know nothing of padding, and an
    LSTM's c comes out at the last place only. So an LSTM is told of padding by one more input,
    which shuts the gate i and opens f: from the sentence's end on c stays, exactly, what it was.
    The last h of each sentence is looked up among the outputs.
    """
    weight_input: Tensor = cell.weight_input
    if lengths is not None and isinstance(cell, LSTMCell):
        inputs, weight_input = _tell_padding(cell, inputs, lengths)
    with _kernel_precision(inputs.device.type, cell.bias.dtype) as dtype:
        weights = [weight_input, cell.weight_hidden, cell.bias, torch.zeros_like(cell.bias)]
        outputs, *last = _call_kernel(
            cell,
            inputs.to(dtype),
            tuple(each.to(dtype).unsqueeze(0).contiguous() for each in state),
            _side_by_side(weights, dtype) if inputs.is_cuda else weights,
        )
    after = tuple(each.squeeze(0).to(cell.bias.dtype) for each in last)
    if lengths is not None:
        rows = torch.arange(len(outputs), device=outputs.device)
        after = (outputs[rows, lengths - 1].to(cell.bias.dtype), *after[1:])
    return outputs, after


def _tell_padding(cell: LSTMCell, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Add an input that is 1 at padding, closes the gate i there and opens f."""
    batch, length, _ = inputs.shape
    is_padding = torch.arange(length, device=inputs.device) >= lengths[:, None]
    told = inputs.new_zeros(batch, length, NUM_COLUMNS)
    told[:, :, 0] = is_padding
    columns = cell.weight_input.new_zeros(len(cell.weight_input), NUM_COLUMNS)
    columns[: cell.hidden_dim, 0] = -SHUT
    columns[cell.hidden_dim : 2 * cell.hidden_dim, 0] = SHUT
    return torch.cat([inputs, told], dim=-1), torch.cat([cell.weight_input, columns], dim=-1)


@contextmanager
def _kernel_precision(device_type: str, own: torch.dtype) -> Iterator[torch.dtype]:
    """Choose the precision of a kernel, and disable autocast within it.

    Left to itself it would choose float16 on a GPU, where small gradients vanish, and on a CPU
    bfloat16 even where the processor has no kernel for it.
    """
    if not torch.amp.is_autocast_available(device_type):
        yield own
        return
    is_lower = device_type == "cuda" and torch.is_autocast_enabled(device_type)
    dtype = torch.get_autocast_dtype(device_type) if is_lower else own
    with torch.autocast(device_type, enabled=False):
        yield dtype


def _call_kernel(
    cell: Cell, inputs: Tensor, state: CellState, weights: list[Tensor]
) -> tuple[Tensor, ...]:
    """Call the kernel of a cell's kind for one layer in one direction, batch first."""
    # Gradients may be needed in evaluation too.
    rest = (True, 1, 0.0, torch.is_grad_enabled(), False, True)
    match cell:
        case RNNCell():
            return torch.rnn_tanh(inputs, state[0], weights, *rest)
        case GRUCell():
            return torch.gru(inputs, state[0], weights, *rest)
        case LSTMCell():
            return torch.lstm(inputs, state, weights, *rest)


def _side_by_side(weights: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Copy weights into one buffer, as cuDNN expects."""
    flat = torch.cat([each.flatten() for each in weights]).to(dtype)
    parts = flat.split([each.numel() for each in weights])
    return [part.view_as(each) for part, each in zip(parts, weights, strict=True)]
