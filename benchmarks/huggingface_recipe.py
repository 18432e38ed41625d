"""Hugging Face's Marian trained from scratch by its usual recipe, with a curve of its quality.

AdamW, the learning rate rising linearly over the first tenth of the time and falling linearly to
the end, label smoothing, batches of sentences of similar length, bfloat16 by autocast if that is
wanted. Search by its own “generate”. Validations do not count as training time. At each of them
everything is saved, so that a run can be stopped and gone on with.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Batch, flatten, group_by_length, make_batch
from dragoman.data.prefetch import prefetched
from dragoman.data.store.store import PairStore, open_store
from dragoman.evaluation.bleu import corpus_bleu, tokenizer_for
from dragoman.files import written_beside
from dragoman.models.options import TransformerOptions
from dragoman.text.subwords import Subwords
from marian import build_marian, use_steady_attention

WARMUP_SHARE = 0.1
SMOOTHING = 0.1
CLIP_NORM = 1.0
POOL_BATCHES = 50
EXTRA_TOKENS = 50
VALID_BATCH_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class Rival:
    """How the rival is trained.

    Parameters
    ----------
    shape : TransformerOptions
        The model's shape.
    minutes : float
        Of training.
    num_points : int
        Validations.
    batch_tokens : int
        Subwords of an update, source plus target.
    peak_learning_rate : float
        At the end of warm-up.
    compiled : bool
        Whether the model is compiled together with its loss.
    precision : str
        “bfloat16”, by autocast, or “float32”.
    attention : str
        See `build_marian`.
    seed : int
        Of all chance in it.
    """

    shape: TransformerOptions = field(default_factory=TransformerOptions)
    minutes: float
    num_points: int
    batch_tokens: int = 25_000
    peak_learning_rate: float = 3e-4
    compiled: bool = False
    precision: str = "bfloat16"
    attention: str = "sdpa"
    seed: int = 1


class Marian:
    """A Marian in training.

    Parameters
    ----------
    rival : Rival
        How.
    store : Path
        The prepared corpus.
    subwords : Path
        Its subwords.
    language : str
        Of the target.
    device : torch.device
        Where.
    """

    def __init__(
        self, rival: Rival, store: Path, subwords: Path, language: str, device: torch.device
    ) -> None:
        use_steady_attention()
        torch.manual_seed(rival.seed)
        self._rival, self._device, self._language = rival, device, language
        self._subwords = Subwords.from_file(str(subwords))
        opened = open_store(store)
        self._train, self._valid = opened.train, opened.valid
        self.model = _build(rival, self._subwords).to(device).train()
        self._optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01,
            fused=True,
        )  # fmt: skip
        self._loss = torch.compile(self._compute, dynamic=True) if rival.compiled else self._compute
        self.points: list[list[float]] = []
        self.step, self.seconds, self._epoch, self._place = 0, 0.0, 0, 0

    def train(self, checkpoint: Path, ends: float) -> bool:
        """Train until the time is up, or the sitting is.

        Parameters
        ----------
        checkpoint : Path
            Where everything is saved; if it is there, training goes on from it.
        ends : float
            When the sitting is over, by the monotonic clock.

        Returns
        -------
        bool
            Whether training came to its end.
        """
        if checkpoint.exists():
            self._restore(checkpoint)
        total = 60 * self._rival.minutes
        began, before = time.monotonic(), self.seconds
        while self.seconds < total:
            for batch in prefetched(self._batches()):
                self._update(batch.to(self._device), self.seconds / total)
                self.step += 1
                self._place += 1
                self.seconds = before + time.monotonic() - began
                is_due = self.seconds >= total * (len(self.points) + 1) / self._rival.num_points
                is_over = time.monotonic() >= ends
                if is_due or is_over or self.seconds >= total:
                    self._wait()
                    self.seconds = before + time.monotonic() - began
                    if is_due or self.seconds >= total:
                        self.points.append([self.seconds, self.validate(), self.step])
                    self._save(checkpoint)
                    began, before = time.monotonic(), self.seconds
                if is_over or self.seconds >= total:
                    break
            else:
                self._epoch, self._place = self._epoch + 1, 0
            if time.monotonic() >= ends:
                break
        return self.seconds >= total

    def validate(self) -> float:
        """Translate the validation lines greedily and score them.

        Returns
        -------
        float
            BLEU.
        """
        sources, references = zip(*map(self._valid.text, range(len(self._valid))), strict=True)
        lines = self.translate(sources)
        return corpus_bleu(lines, [references], tokenize=tokenizer_for(self._language))

    def translate(self, lines: Sequence[str], num_beams: int = 1) -> list[str]:
        """Translate with the weights as they are.

        Parameters
        ----------
        lines : Sequence[str]
            Raw text.
        num_beams : int
            Hypotheses of a beam; 1: greedy search.

        Returns
        -------
        list[str]
            Translations.
        """
        self.model.eval()
        translations: dict[int, str] = {}
        special = pad_id, end_id = self._subwords.pad_id, self._subwords.eos_id
        ids = [[*each, end_id] for each in self._subwords.encode(lines)]
        lengths = flatten(ids).lengths
        for rows in group_by_length(lengths, lengths, VALID_BATCH_TOKENS // num_beams):
            side = flatten([ids[row] for row in rows])
            source = make_batch(side, side, pad_id).source.to(self._device)
            with torch.inference_mode(), self._autocast(training=False):
                found = self.model.generate(
                    input_ids=source.ids, attention_mask=source.is_token.long(),
                    num_beams=num_beams, do_sample=False, use_cache=True,
                    max_new_tokens=source.ids.size(1) + EXTRA_TOKENS,
                )  # fmt: skip
            words = [[word for word in each if word not in special] for each in found.tolist()]
            translations |= dict(zip(rows.tolist(), self._subwords.decode(words), strict=True))
        self.model.train()
        return [translations[row] for row in range(len(lines))]

    def _autocast(self, *, training: bool = True) -> torch.autocast:
        """Make the context of a forward pass; a CPU translates in float32, which is faster."""
        is_half = self._rival.precision == "bfloat16" and (training or self._device.type == "cuda")
        return torch.autocast(self._device.type, torch.bfloat16, enabled=is_half)

    def _batches(self) -> Iterator[Batch]:
        """Yield the rest of the present pass: batches of similar length in random order."""
        for rows in _plan(self._train, self._rival, self._epoch)[self._place :]:
            yield make_batch(*self._train.ids(rows), self._subwords.pad_id)

    def _update(self, batch: Batch, share: float) -> None:
        """Change the weights once."""
        rise, fall = share / WARMUP_SHARE, (1 - share) / (1 - WARMUP_SHARE)
        rate = self._rival.peak_learning_rate * max(0.0, min(rise, fall))
        for group in self._optimiser.param_groups:
            group["lr"] = max(rate, 1e-7)
        target = batch.target
        labels = target.ids.masked_fill(~target.is_token, -100)
        before = target.shifted(self._subwords.pad_id)
        with self._autocast():
            loss = self._loss(batch.source.ids, batch.source.is_token, before, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)

    def _compute(self, source: Tensor, is_token: Tensor, before: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss of a batch."""
        logits = self.model(
            input_ids=source, attention_mask=is_token, decoder_input_ids=before, use_cache=False
        ).logits
        return functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), label_smoothing=SMOOTHING
        )

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def _save(self, path: Path) -> None:
        state = {
            "model": self.model.state_dict(), "optimiser": self._optimiser.state_dict(),
            "points": self.points, "place": [self.step, self.seconds, self._epoch, self._place],
        }  # fmt: skip
        with written_beside(path) as beside:
            torch.save(state, beside)

    def _restore(self, path: Path) -> None:
        state = torch.load(path, map_location=self._device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.points = state["points"]
        self.step, self.seconds, self._epoch, self._place = state["place"]


def _plan(pairs: PairStore, rival: Rival, epoch: int) -> list[np.ndarray]:
    """Sort pools of pairs by length, cut them into batches, and shuffle those."""
    generator = np.random.default_rng((rival.seed, epoch))
    tokens = pairs.source_lengths.astype(np.int64) + pairs.target_lengths
    order = generator.permutation(len(tokens))
    pool = np.cumsum(tokens[order]) // (POOL_BATCHES * rival.batch_tokens)
    order = order[np.lexsort((tokens[order], pool))]
    cuts = np.flatnonzero(np.diff(np.cumsum(tokens[order]) // rival.batch_tokens)) + 1
    batches = np.split(order, cuts)
    return [batches[place] for place in generator.permutation(len(batches))]


def _build(rival: Rival, subwords: Subwords) -> nn.Module:
    """Build Marian, which must never say the padding."""
    model = build_marian(
        rival.shape,
        vocabulary_size=len(subwords),
        pad_id=subwords.pad_id,
        end_id=subwords.eos_id,
        max_positions=1024,
        attention=rival.attention,
    )
    model.generation_config.bad_words_ids = [[subwords.pad_id]]
    return model
