"""The attention of a model on “Jane visite l’Afrique en septembre”, number by number."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.errors import DataError, OptionError
from dragoman.options import option, require
from dragoman.paper.report.result import Cell, Column, Experiment, Say, Table, number, show

if TYPE_CHECKING:
    from dragoman.data.batches import Batch
    from dragoman.decoding.translator import Translator
    from dragoman.folder import ModelFolder
    from dragoman.insight.machine.attention_trace import AttentionTrace
    from dragoman.paper.experiments.notes.worked_tables import ShownModule

_SENTENCE = "Jane visite l’Afrique en septembre"
_TRANSLATION = "Jane visits Africa in September"
# With this vocabulary size every word of the sentence is one token, except “l’Afrique”.
_VOCABULARY_SIZE = 3072
_PRESET = "nano"
_WORD = 3
_MOST_TOKENS = 40
_TOLERANCE = 1e-5
_HELD_OUT = 100


@dataclass(frozen=True, kw_only=True)
class ExampleOptions:
    """Options: the model, the sentence, and what is shown in full."""

    model: str | None = option(
        None, "folder of a trained Transformer, such as demo/fr-en; off: one is trained first"
    )
    untrained: bool = option(False, "fresh weights instead of trained ones")
    sentence: str = option(_SENTENCE, "the sentence")
    translation: str | None = option(
        None, "what the decoder is made to say; off: the notes' words, or else the model's own"
    )
    layer: int = option(1, "layer that is shown, counted from 1")
    head: int = option(1, "head that is worked out, counted from 1")
    token: int | None = option(
        None, "token that is worked out, counted from 1; off: the last of the third word"
    )
    entries: int = option(3, "entries of each vector that are shown")
    steps: int = option(800, "updates of the model, if one is trained")
    sentences: int = option(10_000, "pairs of the built-in corpus to train it on")
    work: str = option("paper-runs", "folder where it is kept, to be used again")

    def __post_init__(self) -> None:
        for name in ("layer", "head", "entries", "steps", "sentences"):
            require(getattr(self, name) >= 1, f"--{name}", getattr(self, name), "give ≥ 1")
        require(self.token is None or self.token >= 1, "--token", self.token, "give ≥ 1, or off")
        require(bool(self.work), "--work", "empty", "name a folder")
        if self.model is not None and self.untrained:
            raise OptionError("--untrained cannot be combined with --model; leave one of them out")


class LoadedModel(NamedTuple):
    """A model and its description.

    Attributes
    ----------
    translator : Translator
        The model.
    story : str
        What weights it has, in a sentence.
    """

    translator: "Translator"
    story: str


def find_model(options: ExampleOptions, say: Say) -> LoadedModel:
    """Load a model, train one, or build one with random weights."""
    from dragoman import model_home
    from dragoman.decoding.translator import Translator
    from dragoman.folder import read_folder

    if options.untrained:
        return _make_fresh(say)
    if options.model is not None:
        path = model_home.find_model(options.model)
        check_family(read_folder(path))
        translator = Translator.load(path, "cpu")
        return LoadedModel(translator, f"The model is {path}, trained for "
                      f"{translator.folder.facts.steps:,} updates.")  # fmt: skip
    return _train(options, say)


def check_family(folder: "ModelFolder") -> None:
    """Refuse models without queries, keys and values."""
    from dragoman.models.options import TransformerOptions

    model, remedy = folder.options, "give a Transformer with full attention"
    if not isinstance(model, TransformerOptions):
        raise OptionError(f"--model: {folder.path} is of the family {model.family}; {remedy}")
    for kind in (model.encoder_attention, model.decoder_attention):
        if kind != "full":
            raise OptionError(f"--model: {folder.path} has {kind} attention; {remedy}")


def _train(options: ExampleOptions, say: Say) -> LoadedModel:
    """Train a small model on the built-in corpus, or reuse it."""
    from dragoman.decoding.translator import Translator
    from dragoman.paper.training_runs.corpora import DataOptions, prepare_corpus
    from dragoman.paper.training_runs.experiment_runs import WorkOptions, run_all
    from dragoman.paper.training_runs.outcomes import Plan

    say(f"no --model is given: a small one is trained first and kept in {options.work}; “make "
        "demo” leaves a better one in demo/fr-en")  # fmt: skip
    work = Path(options.work)
    texts = DataOptions(sentences=options.sentences, held_out=_HELD_OUT).find(work)
    corpus = prepare_corpus(texts, work, _VOCABULARY_SIZE, say)
    flags = ("--max-steps", str(options.steps), "--validate-every", str(options.steps))
    plan = Plan(name="example", preset=_PRESET, seed=1, corpus=corpus, flags=flags,
                search=("--beam-size", "1"))  # fmt: skip
    (outcome, *_), _ = run_all([plan], WorkOptions(work=options.work, jobs=1), say)
    story = (
        f"The model was trained here: preset {_PRESET}, {outcome.num_updates:,} updates on "
        f"{corpus.num_pairs:,} pairs of the built-in corpus, BLEU {outcome.bleu:.1f} on "
        f"{_HELD_OUT} others."
    )
    return LoadedModel(Translator.load(outcome.folder, "cpu"), story)


def _make_fresh(say: Say) -> LoadedModel:
    """Build a model with random weights, and subwords of the built-in corpus."""
    import torch

    from dragoman.data.builtin import generate_pairs
    from dragoman.decoding.translator import Translator
    from dragoman.folder import Facts, ModelFolder
    from dragoman.models.build import build_model
    from dragoman.models.options import TransformerOptions
    from dragoman.options import from_plain
    from dragoman.presets import read_preset
    from dragoman.text.subwords import Subwords, train_subwords
    from dragoman.text.vocabulary import Vocabularies
    from dragoman.weights import vocabulary_of

    say("the weights are fresh: the numbers are right, but mean nothing")
    pairs = list(generate_pairs("fr-en", split="train", count=2000, seed=1))
    lines = (line for pair in pairs for line in (pair.source, pair.target))
    subwords = Subwords.from_bytes(train_subwords(lines, vocabulary_size=2048))
    vocabularies = Vocabularies(subwords, subwords)
    shape = from_plain(TransformerOptions, read_preset(_PRESET)["model"], place=_PRESET)
    torch.manual_seed(1)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    folder = ModelFolder(path=Path("fresh"), config={}, options=shape, vocabularies=vocabularies,
                         facts=Facts())  # fmt: skip
    story = f"The model has fresh weights, in the shape of the preset {_PRESET}."
    return LoadedModel(Translator(folder, model, torch.device("cpu")), story)


class TokenisedPair(NamedTuple):
    """A sentence pair as tokens of a model.

    Attributes
    ----------
    batch : Batch
        The pair.
    source : tuple[str, ...]
        Its tokens.
    read : tuple[str, ...]
        The input of the decoder: the start symbol, and all tokens but the end.
    said : tuple[str, ...]
        The tokens it predicts: each the next one after its input.
    words : tuple[int, ...]
        For each source token the word of the sentence to which it belongs, counted from 1; 0: none.
    translation : str
        The forced translation.
    own : str | None
        The model's own translation; None for random weights.
    """

    batch: "Batch"
    source: tuple[str, ...]
    read: tuple[str, ...]
    said: tuple[str, ...]
    words: tuple[int, ...]
    translation: str
    own: str | None


def read_pair(translator: "Translator", options: ExampleOptions) -> TokenisedPair:
    """Tokenise the sentence and its translation."""
    from dragoman.data.batches import flatten, make_batch
    from dragoman.insight.attention import END, START

    vocabularies = translator.folder.vocabularies
    source_ids = translator.encode(options.sentence)
    if len(source_ids) == 1:
        raise DataError("--sentence is empty; give at least one word")
    own = None if options.untrained else translator.translate(options.sentence).text
    translation = options.translation
    if translation is None:
        is_notes = options.sentence == _SENTENCE and _speaks_english(translator)
        translation = _TRANSLATION if is_notes else own
    if translation is None:
        raise OptionError("--translation is missing: fresh weights have nothing to say; give it")
    target_ids = (*vocabularies.target.encode([translation])[0], vocabularies.eos_id)
    for name, ids in (("--sentence", source_ids), ("--translation", target_ids)):
        if len(ids) > _MOST_TOKENS:
            raise DataError(f"{name} has {len(ids)} tokens; the example shows {_MOST_TOKENS} at "
                            "most: give a shorter one")  # fmt: skip
    pieces = vocabularies.source.pieces(source_ids[:-1])
    words: list[int] = []
    for place, piece in enumerate(pieces):
        begins = place == 0 or piece.startswith(("▁", " "))
        words.append((words[-1] if words else 0) + begins)
    said = (*map(_tidy, vocabularies.target.pieces(target_ids[:-1])), END)
    return TokenisedPair(
        batch=make_batch(flatten([source_ids]), flatten([target_ids]), vocabularies.pad_id),
        source=(*map(_tidy, pieces), END), read=(START, *said[:-1]), said=said,
        words=(*words, 0), translation=translation, own=own,
    )  # fmt: skip


def _speaks_english(translator: "Translator") -> bool:
    """Tell whether a model translates into English, as far as is known."""
    return translator.folder.facts.target_language in (None, "en")


def _tidy(piece: str) -> str:
    """Write a token without the mark of the space before it."""
    return piece.lstrip("▁ ") or "␣"


def run(options: ExampleOptions, say: Say) -> Experiment:
    """Run the worked example."""
    from dragoman.insight.machine.attention_trace import trace_attention
    from dragoman.models.transformer import Transformer
    from dragoman.paper.experiments.notes import worked_tables as tables

    translator, story = find_model(options, say)
    reading = read_pair(translator, options)
    model = translator.model
    assert isinstance(model, Transformer)
    # So that recomputed values differ from the recorded ones in the last digits only.
    several = trace_attention(model.double(), reading.batch)
    checks = tables.tabulate_checks(several)
    # All columns except attention and layer, which name the module.
    worst = max(number(cell) for row in checks.rows for cell in row[2:])
    assert worst < _TOLERANCE, f"what is worked out differs by {worst} from what the model did"
    encoder, decoder, cross = _choose(several, reading, options)
    return Experiment(
        title=f"“{options.sentence}” through attention",
        claim="A(q, K, V) of each token, put together for all tokens, is softmax(QKᵀ/√d_k)V "
        "(001:141–188); heads do this side by side and are joined by W^O; masked attention sees "
        "no later word; the decoder's queries look at the encoder's keys and values (002:19).",
        findings=_find(story, reading, options, (encoder, decoder, cross), worst),
        tables=(
            _tabulate_tokens(reading),
            tables.tabulate_vectors(encoder), tables.tabulate_scores(encoder),
            tables.tabulate_weights(encoder), tables.tabulate_sum(encoder),
            tables.tabulate_contexts(encoder), tables.tabulate_heads(encoder),
            tables.tabulate_scores(decoder), tables.tabulate_weights(decoder),
            tables.tabulate_sum(decoder), tables.tabulate_scores(cross),
            tables.tabulate_weights(cross), tables.tabulate_sum(cross), checks,
        ),
        plots=(
            tables.plot_steps(encoder), tables.plot_heads(encoder), tables.plot_heads(decoder),
            tables.plot_heads(cross),
        ),
        seeds=() if options.model else (1,),
    )  # fmt: skip


def _choose(
    several: Sequence["AttentionTrace"], reading: TokenisedPair, options: ExampleOptions
) -> list["ShownModule"]:
    """Choose the layer, head and tokens that are shown of each kind of attention."""
    from dragoman.paper.experiments.notes.worked_tables import ShownModule

    num_heads = len(several[0].query)
    require(options.head <= num_heads, "--head", options.head, f"the model has {num_heads}")
    third = [place for place, word in enumerate(reading.words, 1) if word == _WORD]
    token = options.token or (third[-1] if third else len(reading.source) - 1)
    last = len(reading.source)
    require(token <= last, "--token", token, f"the sentence has {last}, the end symbol included")
    arrows = tuple(
        f"{read} → {said}" for read, said in zip(reading.read, reading.said, strict=True)
    )
    labels = {
        "encoder": (reading.source, reading.source),
        "decoder": (reading.read, reading.read),
        "cross": (arrows, reading.source),
    }
    shown = []
    for kind, (queries, keys) in labels.items():
        layers = [each for each in several if each.kind == kind]
        deepest = len(layers)
        require(options.layer <= deepest, "--layer", options.layer, f"the {kind} has {deepest}")
        shown.append(
            ShownModule(
                worked=layers[options.layer - 1],
                queries=queries,
                keys=keys,
                head=options.head,
                token=min(token if kind == "encoder" else _WORD, len(queries)),
                entries=options.entries,
            )
        )
    return shown


def _find(
    story: str,
    reading: TokenisedPair,
    options: ExampleOptions,
    shown: Sequence["ShownModule"],
    worst: float,
) -> tuple[str, ...]:
    """Summarise the results."""
    encoder, decoder, cross = shown
    place, head = encoder.token - 1, encoder.head - 1
    most = int(encoder.worked.weights[head, place].argmax())
    later = decoder.worked.weights.triu(1).sum().item()
    looked = [
        f"{said}: {reading.source[int(row.argmax())]}"
        for said, row in zip(reading.said, cross.worked.weights.mean(0), strict=True)
    ]
    return (
        story,
        f"“{options.sentence}” → “{reading.translation}”"
        + (f"; the model's own translation is “{reading.own}”." if reading.own else "."),
        f"In head {encoder.head} of layer {encoder.worked.layer}, “{reading.source[place]}” looks "
        f"most at “{reading.source[most]}” "
        f"({encoder.worked.weights[head, place, most].item():.0%}).",
        f"The mask leaves nothing of later words: their weights sum to {later:g}.",
        "Writing each word, the heads of the layer together look most at: " + ", ".join(looked)
        + ".",
        "Token by token, as matrices and in the model itself the numbers are the same: the largest "
        f"difference anywhere is {show(worst, '.1e')}.",
    )  # fmt: skip


def _tabulate_tokens(reading: TokenisedPair) -> Table:
    """Tabulate the tokens."""
    rows: list[tuple[Cell, ...]] = [
        ("source", place, token, f"x<{word}>" if word else None, None)
        for place, (token, word) in enumerate(zip(reading.source, reading.words, strict=True), 1)
    ]
    rows += [
        ("target", place, read, None, said)
        for place, (read, said) in enumerate(zip(reading.read, reading.said, strict=True), 1)
    ]
    return Table(
        name="tokens",
        title="What is read, token by token",
        columns=(
            Column("side"), Column("number"), Column("token read"), Column("of the word"),
            Column("then says"),
        ),
        rows=tuple(rows),
        notes=(
            "One of the notes (001:100) has five words, x<1> to x<5>; the model reads subwords and "
            "an end symbol. The decoder begins with the start symbol alone (001:235).",
        ),
    )  # fmt: skip
