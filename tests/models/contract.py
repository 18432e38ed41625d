"""What every family of models must do, whatever it is made of."""

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.training.objectives.loss import TrainingStep

VOCABULARY = Vocabulary(source_size=23, target_size=23, pad_id=2, eos_id=0)


def make_pairs(count: int, *, seed: int = 0, longest: int = 9) -> list[tuple[list[int], list[int]]]:
    """Draw pairs of random sentences of different lengths, each ended by the end symbol."""
    generator = torch.Generator().manual_seed(seed)

    def sentence() -> list[int]:
        length = int(torch.randint(1, longest, (), generator=generator))
        words = torch.randint(3, VOCABULARY.target_size, (length,), generator=generator)
        return [*words.tolist(), VOCABULARY.eos_id]

    return [(sentence(), sentence()) for _ in range(count)]


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> Batch:
    """Put pairs into one batch."""
    sources, targets = zip(*pairs, strict=True)
    return make_batch(flatten(sources), flatten(targets), VOCABULARY.pad_id)


def likelihoods(model: nn.Module, pairs: list[tuple[list[int], list[int]]]) -> list[Tensor]:
    """Compute the log-probabilities of each target word, pair by pair, in one batch."""
    with torch.no_grad():
        found = token_log_probabilities(model, batch_of(pairs))
    return [row[: len(target)] for row, (_, target) in zip(found, pairs, strict=True)]


def check_step_equals_forward(model: nn.Module, tolerance: float = 1e-5) -> None:
    """Reading word by word says the same as reading all words at once."""
    model.eval()
    batch = batch_of(make_pairs(5, seed=1))
    with torch.no_grad():
        whole = model.forward(batch).hidden
        state = model.start(model.encode(batch.source), batch.target.ids.size(1))
        shifted = batch.target.shifted(VOCABULARY.pad_id)
        for place in range(shifted.size(1)):
            hidden, state = model.step(shifted[:, place : place + 1], state)
            real = batch.target.lengths > place
            torch.testing.assert_close(
                hidden[real, 0], whole[real, place], atol=tolerance, rtol=tolerance
            )


def check_reorder_and_keep(model: nn.Module, tolerance: float = 1e-5) -> None:
    """Rearranged hypotheses go on exactly as they would have where they were."""
    model.eval()
    batch = batch_of(make_pairs(4, seed=2))
    generator = torch.Generator().manual_seed(3)

    def words(*shape: int) -> Tensor:
        return torch.randint(3, VOCABULARY.target_size, shape, generator=generator)

    first, second, third = words(4, 1), words(4, 3), words(4, 2)
    widen = torch.zeros(4, 3, dtype=torch.int64)
    beams = torch.tensor([[2, 0], [1, 1], [0, 2], [2, 1]])
    kept = torch.tensor([3, 1])
    start = torch.full((4, 1), VOCABULARY.pad_id)

    def run(source_rows: Tensor, paths: list[Tensor]) -> Tensor:
        """Read given words one hypothesis at a time, without rearranging anything."""
        found = []
        for beam in range(paths[0].size(1)):
            source = batch.source
            chosen = type(source)(source.ids[source_rows], source.lengths[source_rows])
            state = model.start(model.encode(chosen), 4)
            for path in paths:
                hidden, state = model.step(path[:, beam : beam + 1], state)
            found.append(hidden)
        return torch.cat(found, dim=1)

    with torch.no_grad():
        state = model.start(model.encode(batch.source), 4)
        _, state = model.step(start, state)
        _, state = model.step(first, state)
        state = state.reorder(widen)
        _, state = model.step(second, state)
        state = state.keep(kept).reorder(beams[kept])
        hidden, _ = model.step(third[kept], state)
        rows = torch.arange(4)[:, None]
        paths = [start.expand(4, 2), first.expand(4, 2), second[rows, beams], third]
        expected = run(kept, [path[kept] for path in paths])
    torch.testing.assert_close(hidden, expected, atol=tolerance, rtol=tolerance)


def check_padding_and_batching(model: nn.Module, tolerance: float = 1e-5) -> None:
    """A pair's probability depends neither on its neighbours nor on padding nor on their order."""
    model.eval()
    pairs = make_pairs(6, seed=4)
    together = likelihoods(model, pairs)
    backwards = likelihoods(model, pairs[::-1])[::-1]
    for index, pair in enumerate(pairs):
        alone = likelihoods(model, [pair])[0]
        for found in (together[index], backwards[index]):
            torch.testing.assert_close(found, alone, atol=tolerance, rtol=tolerance)


def check_padding_while_searching(model: nn.Module, tolerance: float = 1e-5) -> None:
    """A source sentence is read the same alone and beside a longer one."""
    model.eval()
    batch = batch_of(make_pairs(6, seed=5))
    tokens = torch.randint(3, VOCABULARY.target_size, (6, 1))
    with torch.no_grad():
        state = model.start(model.encode(batch.source), 4)
        _, state = model.step(torch.full((6, 1), VOCABULARY.pad_id), state)
        together, _ = model.step(tokens, state)
        for row in range(6):
            length = int(batch.source.lengths[row])
            alone = type(batch.source)(
                batch.source.ids[row : row + 1, :length], batch.source.lengths[row : row + 1]
            )
            state = model.start(model.encode(alone), 4)
            _, state = model.step(torch.full((1, 1), VOCABULARY.pad_id), state)
            hidden, _ = model.step(tokens[row : row + 1], state)
            torch.testing.assert_close(hidden, together[row : row + 1], atol=tolerance,
                                       rtol=tolerance)  # fmt: skip


def check_overfits(model: nn.Module, *, steps: int = 150, rate: float = 1e-2) -> None:
    """A few pairs can be learnt by heart, and every weight takes part in it."""
    torch.manual_seed(6)
    model.train()
    batch = batch_of(make_pairs(4, seed=7, longest=6))
    step = TrainingStep(model, 0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    moved: set[str] = set()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = step(batch) / batch.num_target_tokens
        loss.backward()
        moved |= {
            name
            for name, each in model.named_parameters()
            if each.grad is not None and each.grad.abs().max() > 0
        }
        if loss.item() < 0.1:
            break
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    assert loss.item() < 0.1, f"the loss is still {loss.item():.2f}"
    idle = {name for name, _ in model.named_parameters()} - moved
    assert not idle, f"these weights never got a gradient: {sorted(idle)}"
    words = model.output.words
    assert not words[VOCABULARY.pad_id].any(), "the padding's row must stay zero"


def check_future_is_unseen(model: nn.Module) -> None:
    """What is said of a word does not depend on words after it, not even in the last bit's sign."""
    model.eval()
    pairs = make_pairs(3, seed=8)
    pairs = [(source, [5, 6, 7, 8, 9, 10, VOCABULARY.eos_id]) for source, _ in pairs]
    changed = [(source, [*target[:3], 15, 16, 17, VOCABULARY.eos_id]) for source, target in pairs]
    with torch.no_grad():
        before = model.forward(batch_of(pairs)).hidden[:, :4]
        after = model.forward(batch_of(changed)).hidden[:, :4]
    torch.testing.assert_close(before, after, atol=0, rtol=0)


def check_learns_task(model: nn.Module, *, is_reversed: bool, most_updates: int = 3000) -> None:
    """New sequences of words are copied, or reversed, after some training."""
    torch.manual_seed(9)
    words = torch.arange(3, 13)

    def draw(count: int) -> list[tuple[list[int], list[int]]]:
        pairs = []
        for length in torch.randint(1, 6, (count,)).tolist():
            chosen = words[torch.randint(len(words), (length,))].tolist()
            answer = chosen[::-1] if is_reversed else chosen
            pairs.append(([*chosen, VOCABULARY.eos_id], [*answer, VOCABULARY.eos_id]))
        return pairs

    test = draw(200)
    step = TrainingStep(model, 0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    share = 0.0
    for update in range(1, most_updates + 1):
        model.train()
        batch = batch_of(draw(64))
        optimiser.zero_grad()
        (step(batch) / batch.num_target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if update % 250 == 0:
            model.eval()
            found = search(model, batch_of(test).source, SearchOptions(beam_size=1), VOCABULARY)
            right = [
                list(best[0].tokens) == target[:-1]
                for best, (_, target) in zip(found, test, strict=True)
            ]
            share = sum(right) / len(right)
            if share >= 0.95:
                return
    raise AssertionError(f"only {share:.0%} of the sequences are right")


def check_all(model: nn.Module) -> None:
    """All laws that take no training."""
    check_step_equals_forward(model)
    check_reorder_and_keep(model)
    check_padding_and_batching(model)
    check_padding_while_searching(model)
    check_future_is_unseen(model)
