"""List the model's alternatives at a position of its translation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.search.beam import search
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.word_groups import begins_word
from dragoman.weights import vocabulary_of


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A word that may follow the prefix of a translation.

    Parameters
    ----------
    word : str
        The word; nothing if the translation would end.
    prefix : str
        The beginning with the word.
    translation : str
        How the model would go on from there, word by word.
    probability : float
        Of the word, given the source and the beginning.
    """

    word: str
    prefix: str
    translation: str
    probability: float


def list_choices(
    translator: Translator, source: str, prefix: str, *, num_choices: int = 8
) -> list[Choice]:
    """List the most probable words after a prefix of a translation.

    Notes
    -----
    The most probable subwords are continued greedily, each to the end of its word and further to
    the end of its translation, all at once. The probability of a word is that of its subwords
    together; where two of them spell the same word, their sum. Letters that would make another
    word of the last one of the beginning are left out; a mark of punctuation after it is not.
    """
    vocabularies = translator.folder.vocabularies
    source_ids = translator.encode(source)
    if len(source_ids) == 1:
        raise DataError("the sentence to translate is empty; give at least one word")
    prefix_ids = vocabularies.target.encode([prefix])[0]
    if vocabularies.target.unk_id in prefix_ids and not vocabularies.is_closed:
        raise OptionError(f"prefix: “{prefix}” has characters that the model cannot write")
    firsts = _first_subwords(translator, source_ids, prefix_ids, 2 * num_choices)
    ended = [first for first in firsts if first[0] == vocabularies.eos_id]
    others = [token_id for token_id, _ in firsts if _may_follow(translator, prefix_ids, token_id)]
    found: dict[str, Choice] = {}
    for _, log in ended:
        text = vocabularies.target.decode([prefix_ids])[0]
        found[""] = Choice(word="", prefix=text, translation=text, probability=math.exp(log))
    for each in _continue_all(translator, source_ids, prefix_ids, others):
        choice = _read_choice(translator, each, len(prefix_ids))
        known = found.get(choice.prefix)
        chance = choice.probability + (known.probability if known else 0.0)
        found[choice.prefix] = replace(known or choice, probability=chance)
    return sorted(found.values(), key=lambda each: -each.probability)[:num_choices]


def _may_follow(translator: Translator, prefix_ids: Sequence[int], token_id: int) -> bool:
    """Say whether a subword can begin the next word."""
    vocabulary = translator.folder.vocabularies.target
    if token_id == vocabulary.eos_id:
        return False
    before, piece = vocabulary.pieces([prefix_ids[-1] if prefix_ids else token_id, token_id])
    return not prefix_ids or begins_word(piece, before) or not piece[:1].isalnum()


@torch.inference_mode()
def _first_subwords(
    translator: Translator, source_ids: Sequence[int], prefix_ids: Sequence[int], count: int
) -> list[tuple[int, float]]:
    """Find the most probable subwords after the prefix, with their log-probabilities."""
    vocabularies = translator.folder.vocabularies
    target_ids = (*prefix_ids, vocabularies.eos_id)
    batch = make_batch(flatten([source_ids]), flatten([target_ids]), vocabularies.pad_id)
    model = translator.model
    scores = model.output(model.forward(batch.to(translator.device)).hidden)[0, -1].float()
    logs = scores.log_softmax(-1)
    logs[vocabularies.pad_id] = -torch.inf
    if not vocabularies.is_closed:
        logs[vocabularies.target.unk_id] = -torch.inf
    best = logs.topk(min(count, len(logs) - 2))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def _continue_all(
    translator: Translator,
    source_ids: Sequence[int],
    prefix_ids: Sequence[int],
    firsts: Sequence[int],
) -> list[Hypothesis]:
    """Extend the prefix and each of some subwords greedily."""
    if not firsts:
        return []
    vocabularies, device = translator.folder.vocabularies, translator.device
    sources = pad_sequences(flatten([source_ids] * len(firsts)), vocabularies.pad_id)
    rows = [[*prefix_ids, first] for first in firsts]
    found = search(
        translator.engine,
        sources.to(device),
        replace(translator.options, beam_size=1, coverage_penalty=0.0),
        vocabulary_of(vocabularies),
        prefixes=torch.tensor(rows, device=device),
        banned_ids=() if vocabularies.is_closed else (vocabularies.target.unk_id,),
        max_length=translator.folder.options.max_length,
    )
    return [each[0] for each in found if each]


def _read_choice(translator: Translator, hypothesis: Hypothesis, num_before: int) -> Choice:
    """Extract the first word after the prefix from a hypothesis."""
    vocabulary = translator.folder.vocabularies.target
    tokens = hypothesis.tokens
    pieces = vocabulary.pieces(tokens)
    end = num_before + 1
    while end < len(tokens) and not begins_word(pieces[end], pieces[end - 1]):
        end += 1
    begin = end - 1
    while begin and not begins_word(pieces[begin], pieces[begin - 1]):
        begin -= 1
    word, text, translation = vocabulary.decode([tokens[begin:end], tokens[:end], tokens])
    logs = hypothesis.token_log_probabilities[num_before:end]
    return Choice(
        word=word or text,
        prefix=text,
        translation=translation,
        probability=math.exp(sum(logs)),
    )
