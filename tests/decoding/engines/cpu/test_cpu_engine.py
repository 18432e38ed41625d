"""Transformers compiled in eight bits find what the search of all models finds."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.decoding.engines.cuda.test_rebuilt_transformer import KINDS, SMALL

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.engines.cpu import cpu_engine
from dragoman.decoding.engines.cpu.cpu_engine import (
    CpuEngine,
    ShortListEngine,
    count_threads,
)
from dragoman.decoding.engines.cpu.cpu_weights import can_be_compiled, read_cpu_model
from dragoman.decoding.engines.search_engine import MOST_BEAMS, SearchRequest
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.output.unknown_words import layer_attention
from dragoman.decoding.quantise import write_int8
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.repetition import RepetitionBlocker
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, FolderError
from dragoman.folder import WEIGHTS_FILE, read_folder
from dragoman.kernels.processor import can_compile
from dragoman.weights import load_model, vocabulary_of

needs_compiler = pytest.mark.skipif(not can_compile(), reason="needs Numba")
LEFT_TO_LAYERS = ("batch", "normalised", "rotary", "alibi", "relative")
COMPILED = {kind: each for kind, each in KINDS.items() if kind not in LEFT_TO_LAYERS}
COMPILED |= {
    "the paper's heads": {"key_dim": 64, "value_dim": 64},
    "another epsilon": {"norm_epsilon": 0.3},
    "ssru": {"decoder_attention": "ssru"},
    "ssru, pre-norm": {"decoder_attention": "ssru", "norm_position": "pre"},
}


def some_sources(folder, lengths=(5, 1, 9, 3, 7)):
    chance = np.random.default_rng(7)
    size, eos_id = len(folder.vocabularies.source), folder.vocabularies.eos_id
    return [(*chance.integers(4, size, n).tolist(), eos_id) for n in lengths]


def find(
    engine, sources, *, beams=3, best=1, alpha=0.6, extra=4, banned=(), scored=True,
    unrepeated=False, **more,
):  # fmt: skip
    request = SearchRequest(beams, best, alpha, banned, scored, unrepeated)
    limits = [len(each) + extra for each in sources]
    prefixes = more.get("prefixes", ())
    if prefixes:
        limits = [n + len(each) for n, each in zip(limits, prefixes, strict=True)]
    return engine.find(sources, limits, request, **more)


def search_with_all(
    folder, engine, sources, *, beams=3, best=1, alpha=0.6, extra=4, unrepeated=None, **more
):
    """Let the search of all models search with the same functions."""
    from tests.decoding.cpu_oracle import Oracle

    vocabulary = vocabulary_of(folder.vocabularies)
    model = Oracle(engine.model)
    return search(
        model if unrepeated is None else RepetitionBlocker(model, unrepeated),
        pad_sequences(flatten(sources), vocabulary.pad_id),
        SearchOptions(beam_size=beams, length_penalty=alpha, max_extra_tokens=extra),
        vocabulary,
        num_best=best,
        **more,
    )


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
            logs = one.token_log_probabilities
            assert logs == pytest.approx(other.token_log_probabilities, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_positions_change_is_not_compiled(kind):
    assert can_be_compiled(replace(SMALL, **KINDS[kind])) == (
        can_compile() and kind not in LEFT_TO_LAYERS
    )


@needs_compiler
class TestFinding:
    @pytest.mark.parametrize("kind", COMPILED)
    def test_the_decoder_says_nearly_what_that_in_float_says(self, make_folder, precision, kind):
        from tests.decoding.cpu_oracle import Oracle

        folder = make_folder(**COMPILED[kind])
        plain, oracle = (
            Translator.load(folder.path, "cpu").model,
            Oracle(read_cpu_model(folder, precision)),
        )
        source, words = some_sources(folder)[0], [folder.vocabularies.pad_id, 9, 30, 7]
        with torch.inference_mode():
            state = plain.start(plain.encode(pad_sequences(flatten([source]), 2)), 4)
            for word in words:
                hidden, state = plain.step(torch.tensor([[word]]), state)
        seen = source if folder.options.source_end else source[:-1]
        found = torch.from_numpy(oracle.read(seen, words))
        bound = {"int8": 0.04, "float32": 1e-5}[precision]
        assert (found - hidden[0, 0]).norm() < bound * hidden.norm()

    @pytest.mark.parametrize("beams", [1, 2, 5])
    @pytest.mark.parametrize("alpha", [0.0, 1.2])
    @pytest.mark.parametrize("kind", ["paper", "pre-norm", "untied", "ssru"])
    def test_it_is_the_search_of_all_models(self, make_folder, precision, beams, alpha, kind):
        folder = make_folder(**COMPILED[kind])
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
        how = {"beams": beams, "alpha": alpha, "best": beams}
        expected = search_with_all(folder, engine, sources, **how)
        assert_same(find(engine, sources, **how), expected)

    def test_prefixes_limits_and_what_is_banned(self, make_folder, precision):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
        first = {each[0].tokens[0] for each in find(engine, sources, extra=0)}
        how = {"extra": 0, "best": 2}
        expected = search_with_all(folder, engine, sources, banned_ids=tuple(first), **how)
        assert_same(find(engine, sources, banned=tuple(first), **how), expected)
        prefixes = [(9, 8), (), (7,), (), (6, 5)]
        padded = torch.tensor([[*each, -1, -1][:2] for each in prefixes])
        expected = search_with_all(folder, engine, sources, prefixes=padded, **how)
        found = find(engine, sources, prefixes=prefixes, **how)
        assert_same(found, expected)
        assert [each[0].tokens[: len(p)] for each, p in zip(found, prefixes, strict=True)] == [
            *prefixes
        ]

    @pytest.mark.parametrize("beams", [1, 3])
    @pytest.mark.parametrize("prefix", [(), (9, 9, 9, 9)])
    def test_no_phrase_is_said_three_times_in_a_row(self, make_folder, precision, beams, prefix):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder, (5, 9, 3))
        how = {"beams": beams, "extra": 20}
        padded = torch.tensor([prefix] * len(sources)) if prefix else None
        expected = search_with_all(
            folder, engine, sources, unrepeated=len(prefix), prefixes=padded, **how
        )
        prefixes = [prefix] * len(sources) if prefix else ()
        found = find(engine, sources, unrepeated=True, prefixes=prefixes, **how)
        assert_same(found, expected)
        assert found != find(engine, sources, prefixes=prefixes, **how)  # which do repeat
        alone = [
            find(engine, [each], unrepeated=True, prefixes=prefixes[:1], **how)[0]
            for each in sources
        ]
        assert found == alone

    @pytest.mark.parametrize("beams", [1, 4])
    def test_company_changes_no_bit(self, make_folder, precision, monkeypatch, beams):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder, range(1, 30))
        together = find(engine, sources, beams=beams)
        alone = [find(engine, [each], beams=beams)[0] for each in sources]
        assert together == alone
        monkeypatch.setattr(cpu_engine, "MOST_ROWS", 3 * beams)  # slots are refilled
        assert find(engine, sources, beams=beams) == alone
        monkeypatch.setattr(engine, "_num_cores", 3)
        assert find(engine, sources[::-1], beams=beams) == alone[::-1]
        monkeypatch.setattr(cpu_engine, "MOST_PLACES", 200)  # one long sentence, and few others
        assert find(engine, sources, beams=beams) == alone

    def test_threads_may_ask_at_once(self, make_folder, precision):
        folder = make_folder()
        engine, lengths = CpuEngine.load(folder, precision), (700, 1300, 40)
        expected = [
            find(CpuEngine.load(folder, precision), some_sources(folder, [n])) for n in lengths
        ]
        with ThreadPoolExecutor(3) as threads:
            asked = [threads.submit(find, engine, some_sources(folder, [n])) for n in lengths]
            assert [each.result() for each in asked] == expected

    def test_as_many_of_the_best_as_hypotheses(self, make_folder, precision):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder, [3, 5])
        how = {"beams": MOST_BEAMS, "best": MOST_BEAMS}
        expected = search_with_all(folder, engine, sources, **how)
        assert_same(find(engine, sources, **how), expected)

    def test_learned_positions_end(self, make_folder, precision):
        folder = make_folder(positions="learned", max_positions=12)
        engine = CpuEngine.load(folder, precision)
        assert find(engine, some_sources(folder, [7]))
        with pytest.raises(DataError, match="13 subwords is longer than the 12 learned positions"):
            find(engine, some_sources(folder, [8]))

    def test_greedy_search_without_scores_finds_the_same(self, make_folder, precision):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
        scored, plain = (find(engine, sources, beams=1, scored=each) for each in (True, False))
        assert [each[0].tokens for each in plain] == [each[0].tokens for each in scored]
        assert np.isnan(plain[0][0].score)

    def test_positions_grow_with_sentences(self, make_folder, precision, monkeypatch):
        folder = make_folder()
        expected = find(CpuEngine.load(folder, precision), some_sources(folder, [20]))
        monkeypatch.setattr("dragoman.decoding.engines.cpu.cpu_weights.FIRST_POSITIONS", 2)
        assert find(CpuEngine.load(folder, precision), some_sources(folder, [20])) == expected

    def test_nothing_to_find(self, make_folder, precision):
        assert (
            CpuEngine.load(make_folder(), precision).find(
                [], [], SearchRequest(1, 1, 0.6, (), True)
            )
            == []
        )

    def test_what_ends_the_call_ends_the_search(self, make_folder, precision, monkeypatch):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder, [40] * 20_000)
        num_threads = threading.active_count()

        def interrupt(_):
            raise KeyboardInterrupt

        monkeypatch.setattr(cpu_engine, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            find(engine, sources, beams=4)
        assert threading.active_count() == num_threads  # which would take minutes by itself


@needs_compiler
class TestAttention:
    @pytest.mark.parametrize("kind", ["paper", "pre-norm", "widths", "no end", "the paper's heads"])
    def test_given_translations_attend_as_in_the_plain_model(self, make_folder, kind, monkeypatch):
        folder = make_folder(**COMPILED[kind])
        engine, pad_id = CpuEngine.load(folder, "float32", searches=False), 2
        sources, targets = some_sources(folder), some_sources(folder, (4, 8, 1, 2, 9))
        batch = make_batch(flatten(sources), flatten(targets), pad_id)
        maps = layer_attention(load_model(folder), batch).values()
        expected = folder.options.num_heads * torch.stack([*maps]).sum(0).numpy()
        monkeypatch.setattr(cpu_engine, "ATTENDING", 3)
        found = engine.attend(sources, targets)
        for own, all_, source, target in zip(found, expected, sources, targets, strict=True):
            np.testing.assert_allclose(own, all_[: len(target), : len(source)], atol=1e-4)

    def test_tokens_of_no_vocabulary_are_refused(self, make_folder):
        folder = make_folder()
        engine = CpuEngine.load(folder, "float32", searches=False)
        for pair in (([[1000, 0]], [[5, 0]]), ([[5, 0]], [[1000, 0]])):
            with pytest.raises(ValueError, match="is not among the"):
                engine.attend(*pair)

    def test_nothing_is_attended_to_by_nothing(self, make_folder):
        assert CpuEngine.load(make_folder(), "int8", searches=False).attend([], []) == []


@needs_compiler
class TestShortLists:
    def test_all_words_are_no_list(self, make_folder, precision):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
        every = np.arange(len(folder.vocabularies.target))
        assert find(engine, sources, choose=lambda _: every) == find(engine, sources)

    @pytest.mark.parametrize("beams", [1, 3])
    def test_only_a_sentences_own_words_are_said(self, make_folder, precision, beams):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)

        def choose(sentence):
            chance = np.random.default_rng(sum(sentence))
            eos_id = folder.vocabularies.eos_id
            return np.unique([eos_id, *chance.integers(3, 300, 70)])

        found = find(engine, sources, beams=beams, choose=choose)
        for source, (best,) in zip(sources, found, strict=True):
            assert set(best.tokens) <= set(choose(source).tolist())
        alone = [find(engine, [each], beams=beams, choose=choose)[0] for each in sources]
        assert found == alone

    def test_prefixes_may_have_any_words(self, make_folder, precision):
        folder = make_folder()
        engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
        listed = ShortListEngine(engine, lambda _: np.array([folder.vocabularies.eos_id, 9]))
        assert {token for each in find(listed, sources) for token in each[0].tokens} <= {9}
        prefixes = [(30,)] * len(sources)
        found = find(listed, sources, prefixes=prefixes)
        assert found == find(engine, sources, prefixes=prefixes)


@needs_compiler
class TestChoosing:
    def test_threads_are_those_that_other_libraries_have(self, monkeypatch):
        assert count_threads() == torch.get_num_threads()
        monkeypatch.delitem(sys.modules, "torch")
        monkeypatch.setattr(cpu_engine, "count_cores", lambda: 4)
        for said, expected in (("", 4), ("3", 3), ("9", 4), ("0", 4), ("x", 4)):
            monkeypatch.setenv("OMP_NUM_THREADS", said)
            assert count_threads() == expected


@needs_compiler
class TestLoading:
    def test_folders_in_float_and_in_eight_bits_are_one_model(self, make_folder, tmp_path):
        folder = make_folder(attention_bias=True, output_bias=True)
        write_int8(folder, tmp_path / "int8")
        sources = some_sources(folder)
        found, expected = (
            find(CpuEngine.load(each, "int8"), sources)
            for each in (read_folder(tmp_path / "int8"), folder)
        )
        assert found == expected

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda each: each.pop("decoder.1.feed_forward.outer.weight"), "is missing"),
            (lambda each: each.pop("encoder_norm.weight"), r"\(encoder_norm.weight is missing\)"),
            (
                lambda each: each.update(
                    {"decoder.0.cross_attention.key.weight": torch.ones(3, 3)}
                ),
                r"holds another model \(decoder.0.cross_attention.key.weight has shape \(3, 3\)",
            ),
            (
                lambda each: each["source_embedding.words"].fill_(torch.nan),
                "has numbers that are not finite",
            ),
        ],
    )
    def test_damaged_weights_are_named(self, make_folder, damage, message):
        folder = make_folder(norm_position="pre")
        path = folder.path / WEIGHTS_FILE
        weights = load_file(path)
        damage(weights)
        save_file(weights, path)
        with pytest.raises(FolderError, match=message):
            CpuEngine.load(read_folder(folder.path), "int8")

    def test_nothing_more_is_compiled_after_loading(self, make_folder):
        from dragoman.kernels.cpu_search.slot_search import search as compiled_search

        CpuEngine.load(make_folder(), "int8")
        known = list(compiled_search.signatures)
        for kind in ("learned", "untied", "swiglu"):
            folder = make_folder(**KINDS[kind])
            engine, sources = CpuEngine.load(folder, "int8"), some_sources(folder)
            find(engine, sources, beams=1, alpha=1, scored=False)
            find(engine, sources, best=2, banned=(3,), prefixes=[(5,)] * len(sources))
            find(engine, sources, choose=lambda _: np.array([0, 9]))
        assert compiled_search.signatures == known

    def test_a_whole_run_needs_no_pytorch(self, make_folder, tmp_path):
        folder = make_folder()
        text = tmp_path / "text.en"
        text.write_text("The dog sees a house.\n\nThe old tree.\n")
        script = (  # its translations repeat themselves, and are searched for again
            "import sys; from dragoman.cli.command import main; code = main(sys.argv[1:]); "
            "assert 'torch' not in sys.modules; sys.exit(code)"
        )
        command = [
            sys.executable, "-c", script, "translate", str(folder.path), str(text),
            "--device", "cpu", "--precision", "int8", "--n-best", "2", "--alignments", "--scores",
        ]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert [line.split(" ||| ")[0] for line in run.stdout.splitlines()][:2] == ["0", "0"]


@needs_compiler
class TestDevices:
    @pytest.mark.parametrize("may_have", [True, False])
    def test_pytorch_is_asked_only_where_there_may_be_a_card(
        self, make_folder, monkeypatch, may_have
    ):
        folder, asked = make_folder(), []

        def choose(name):
            asked.append(name)
            return torch.device("cpu")

        monkeypatch.setattr("dragoman.decoding.translator.may_have_accelerator", lambda: may_have)
        monkeypatch.setattr("dragoman.decoding.translator.choose_device", choose)
        translator = Translator.load(folder.path, "auto", precision="int8")
        assert asked == ["auto"] * may_have
        assert translator.device_type == "cpu"
        assert isinstance(translator.cpu_engine, CpuEngine)
