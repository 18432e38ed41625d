"""Text in, text out: order, splitting, prefixes and alternatives, on an untrained model."""

import copy
import inspect
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece
import torch

import dragoman
from dragoman.cli.command import main
from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.output.quality_checks import QualityIssue
from dragoman.decoding.search.beam import search
from dragoman.decoding.segment_search import SegmentSearch
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.kernels.cpu_search import slot_search
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.options import to_plain
from dragoman.text.dictionary import Dictionary
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import UNKNOWN, learn_words, split_words
from dragoman.weights import vocabulary_of, write_model

TEXTS = ["The dog sees a house.", "A red tree.", "Old garden near the big house!", "dog"]


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, device="cpu")


def with_facts(translator, **facts):
    """The same model in a folder that says other things of it."""
    folder = replace(translator.folder, facts=replace(translator.folder.facts, **facts))
    return Translator(folder, translator.model, translator.device)


def with_longest(translator, longest):
    return with_facts(translator, longest_source=longest)


def cut(translator, *texts):
    """The pieces of texts that are split as the folder says."""
    return translator._splitter.segments(texts, translator.options, lambda _: 1)


def read_pieces(translator, text, monkeypatch):
    """Translate a text and give the pieces of it that the model read."""
    seen = []
    encode = translator.model.encode

    def spy(source):
        rows = zip(source.ids.tolist(), source.lengths.tolist(), strict=True)
        seen.extend(tuple(ids[:length]) for ids, length in rows)
        return encode(source)

    monkeypatch.setattr(translator.model, "encode", spy)
    translation = translator.translate(
        text, options=replace(translator.options, search_again=False)
    )
    monkeypatch.undo()
    return translation, seen


def test_loads_the_folders_search_options(translator):
    assert translator.options == SearchOptions(beam_size=3, length_penalty=0.6, max_extra_tokens=6)
    assert not translator.model.training


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"beam_size": 0}, ": beam_size is 0: must be from 1 to 1,000"),
        ({"beam_size": "x"}, ": beam_size is 'x', but must be a whole number"),
        (3, " is 3, but must be a section of options"),
    ],
)
def test_bad_search_options_name_the_folders_file(translator, search, message):
    folder = replace(translator.folder, config={"search": search})
    with pytest.raises(OptionError) as caught:
        Translator(folder, None, translator.device)
    assert str(caught.value) == f"{folder.path / 'config.toml'}: search{message}"


def test_the_packages_own_loader(tiny_folder, translator):
    text = dragoman.load(str(tiny_folder.path), device="cpu").translate(TEXTS[0])
    assert text == translator.translate(TEXTS[0])


def test_order_is_kept_and_company_changes_nothing(translator):
    alone = [translator.translate(text) for text in TEXTS]
    assert len({each.text for each in alone}) > 1
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        together = translator.translate_all([TEXTS[index] for index in order])
        assert [each.text for each in together] == [alone[index].text for index in order]
        scores = [alone[index].score for index in order]
        assert [each.score for each in together] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("limit", ["BATCH_PLACES", "BATCH_ROWS"])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_many_batches_change_nothing(translator, monkeypatch, limit, num_threads):
    whole = translator.translate_all(TEXTS)
    monkeypatch.setattr(f"dragoman.decoding.search.batched_search.{limit}", {"cpu": 1})
    monkeypatch.setattr("dragoman.decoding.search.batched_search.CACHED_SCORES", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        parts = translator.translate_all(TEXTS)
    finally:
        torch.set_num_threads(before)
    assert [each.text for each in parts] == [each.text for each in whole]


@pytest.mark.parametrize("text", ["", " ", "\t \u00a0", "\u00ad"])
def test_a_text_without_words_gives_an_empty_translation(translator, text):
    found = translator.translate_all([TEXTS[0], text, TEXTS[1]], num_best=2, prefix="Le")
    assert (found[1].text, found[1].score, found[1].alternatives) == ("", 0.0, ())
    assert translator.translate_all([text])[0].text == ""
    assert found[0].text == translator.translate(TEXTS[0], num_best=2, prefix="Le").text


def test_no_texts(translator):
    assert translator.translate_all([]) == []


def test_is_what_the_search_finds(translator):
    vocabularies = translator.folder.vocabularies
    options = replace(translator.options, search_again=False)
    for text in TEXTS:
        source = pad_sequences(flatten([translator.encode(text)]), vocabularies.pad_id)
        (found,) = search(
            translator.model, source, options, vocabulary_of(vocabularies), num_best=3,
            banned_ids=(vocabularies.target.unk_id,),
        )  # fmt: skip
        translation = translator.translate(text, num_best=3, options=options)
        every = [translation, *translation.alternatives]
        decoded = vocabularies.target.decode([each.tokens for each in found])
        assert [each.text for each in every] == decoded
        assert [each.score for each in every] == pytest.approx([each.score for each in found])


# Long texts


@pytest.mark.parametrize("longest", [4, 6, 9, 15])
def test_long_texts_are_split_and_nothing_is_lost(translator, longest, monkeypatch):
    short = with_longest(translator, longest)
    text = " ".join(TEXTS) + " " + "dog house " * 12 + "abcdefghijklmnopqrstuvwxyz"
    translation, pieces = read_pieces(short, text, monkeypatch)
    assert len(pieces) > 3
    assert max(map(len, pieces)) <= longest
    decode = translator.folder.vocabularies.source.decode
    by_length = sorted(decode(pieces))
    remaining = normalise(text).replace(" ", "")
    assert sorted("".join(by_length).replace(" ", "")) == sorted(remaining)
    assert translation.text


def test_a_long_text_is_its_sentences_translated_and_joined(translator):
    longest = max(len(translator.encode(text)) for text in TEXTS[:3])
    short = with_longest(translator, longest)
    whole = short.translate("  ".join(TEXTS[:3]))
    parts = [translator.translate(text).text for text in TEXTS[:3]]
    assert whole.text == "  ".join(parts).strip()


def test_pieces_without_space_between_are_joined_without_space(translator):
    short = with_longest(translator, 4)
    word = "qxzqxzqxzqxz"
    pieces = cut(short, word)
    assert len(pieces) > 1
    assert all(piece.space == "" for piece in pieces)


def test_a_text_that_just_fits_is_one_piece(translator):
    length = len(translator.encode(TEXTS[0]))
    assert len(cut(with_longest(translator, length), TEXTS[0])) == 1
    assert len(cut(with_longest(translator, length - 1), TEXTS[0])) > 1
    assert len(cut(with_longest(translator, 0), "dog " * 50)) == 1


# Sentences, unless the model knows several at once

TWO = "Old garden. The dog sees a house."


@pytest.mark.parametrize(
    ("is_single", "splits", "pieces"),
    [
        (True, "auto", ["Old garden. ", "The dog sees a house."]),
        (None, "auto", ["Old garden. ", "The dog sees a house."]),
        (False, "auto", [TWO]),
        (False, "on", ["Old garden. ", "The dog sees a house."]),
        (True, "off", [TWO]),
    ],
)
def test_sentences_are_split_as_the_folder_and_the_user_say(translator, is_single, splits, pieces):
    known = with_facts(translator, one_sentence_a_line=is_single)
    options = replace(translator.options, split_sentences=splits)
    found = known.translate(TWO, options=options)
    assert [part.source for part in found.parts] == known.split(TWO, options) == pieces
    alone = [known.translate(piece, options=replace(options, split_sentences="off")).text
             for piece in pieces]  # fmt: skip
    assert found.text == " ".join(alone).strip()


def test_line_breaks_stay_between_lines(translator):
    lines = ["The dog", "sees a house.", "Old garden"]
    alone = [translator.translate(line).text for line in lines]
    for is_single in (True, False):
        known = with_facts(translator, one_sentence_a_line=is_single)
        assert known.translate("\n\n".join(lines)).text == "\n\n".join(alone).strip()


def test_chinese_sentences_are_parted_where_the_target_needs_it(translator):
    first, second = (translator.translate(text).text for text in ("木。", "犬。"))
    assert translator.translate("木。犬。").text == f"{first} {second}".strip()


def test_alternatives_and_scores_of_two_sentences_are_joined(translator):
    best = translator.translate(TWO, num_best=3)
    for each in (best, *best.alternatives):
        assert len(each.parts) == 2
        assert each.tokens.count(translator.folder.vocabularies.eos_id) == 2
        assert len(each.tokens) == len(each.log_probabilities)


# Searching again


def searched_by_the_general_search(translator):
    return Translator(translator.folder, translator.model, "cpu")


def pretend_again(monkeypatch, subwords, first, second):
    """Let the first search and the second find given tokens and log-probabilities."""

    def pretend(model, source, options, *_, num_best, **__):
        is_first = options.length_penalty == 0.6
        return [
            [
                Hypothesis(
                    tokens=tuple(subwords.encode([text])[0]),
                    log_probability=log,
                    score=log,
                    token_log_probabilities=(log,),
                )
                for text, log in (first if is_first else second)[:num_best]
            ]
            for _ in source.lengths
        ]

    monkeypatch.setattr("dragoman.decoding.search.batched_search.search", pretend)


def test_a_second_search_is_scored_as_the_first_and_keeps_its_order(translator, monkeypatch):
    subwords = translator.folder.vocabularies.target
    good = "le petit chien voit un vieux jardin"
    pretend_again(monkeypatch, subwords, [("le", -1.0), ("un", -2.0)], [(good, -9.0), ("le", -1.0)])
    text = "the small dog sees an old garden and a house " * 2
    translator = searched_by_the_general_search(translator)
    best = translator.translate(text, num_best=2)
    assert best.text == good
    assert best.notes == (
        "translation far too short (2 characters from 70); another search did better",
    )
    assert [each.text for each in best.alternatives] == ["le"]
    assert best.score == pytest.approx(-9.0 / ((5 + len(best.tokens)) / 6) ** 0.6)
    plain = translator.translate(
        text, num_best=2, options=replace(translator.options, search_again=False)
    )
    assert (plain.text, plain.notes) == ("le", ())


def test_only_the_sentence_that_looks_wrong_is_searched_for_again(translator, monkeypatch):
    seen = []
    find = SegmentSearch.find

    def spy(self, segments):
        seen.extend(segment.text for segment in segments if self.is_unrepeated)
        return find(self, segments)

    monkeypatch.setattr(SegmentSearch, "find", spy)
    monkeypatch.setattr(
        "dragoman.decoding.output.quality_checks.find_quality_issue",
        lambda source, _: QualityIssue(kind="repetition", words="odd") if "dog" in source else None,
    )
    found = translator.translate(TWO)
    assert seen == ["The dog sees a house."]
    assert found.notes == ("translation odd; another search did no better",)


# Alternatives


@pytest.mark.parametrize("num_best", [2, 3, 8])
def test_alternatives_are_sorted_and_distinct(translator, num_best):
    for translation in translator.translate_all(TEXTS, num_best=num_best):
        every = [translation, *translation.alternatives]
        assert 1 < len(every) <= num_best
        scores = [each.score for each in every]
        assert scores == sorted(scores, reverse=True)
        assert len({each.text for each in every}) == len(every)


def pretend_found(monkeypatch, *candidates):
    """Let the search find (tokens, log-probability) for every piece, and score it rightly."""
    hypotheses = [
        Hypothesis(
            tokens=tuple(tokens),
            log_probability=log,
            score=log / ((5 + len(tokens) + 1) / 6) ** 0.6,
        )
        for tokens, log in candidates
    ]

    def pretend(model, source, *_, **__):
        return [hypotheses for _ in source.lengths]

    monkeypatch.setattr("dragoman.decoding.search.batched_search.search", pretend)


def test_two_spellings_of_one_text_are_one_alternative(translator, monkeypatch):
    subwords = translator.folder.vocabularies.target
    pieces = subwords.pieces(range(len(subwords)))
    usual, other = subwords.encode(["arbre", "jardin"])
    in_bytes = [pieces.index(f"<0x{byte:02X}>") for byte in b"arbre"]
    assert subwords.decode([usual, in_bytes]) == ["arbre", "arbre"]
    pretend_found(monkeypatch, (usual, -1.0), (in_bytes, -3.0), (other, -4.0))
    translator = searched_by_the_general_search(translator)
    translation = translator.translate("Tree.", num_best=3)
    assert [translation.text, *(each.text for each in translation.alternatives)] == [
        "arbre", "jardin",
    ]  # fmt: skip


def test_alternatives_of_a_long_text_are_sorted_and_distinct(translator, monkeypatch):
    """The longer of two nearly equal translations wins where several of them are joined."""
    short = with_longest(translator, max(len(translator.encode(text)) for text in TEXTS[:2]))
    assert len(cut(short, " ".join(TEXTS[:2]))) == 2
    subwords = translator.folder.vocabularies.target
    brief = subwords.encode(["a"])[0]
    wordy = brief[:1] * 19
    pretend_found(monkeypatch, (brief, -5.0), (wordy, -10.9))
    translation = short.translate(" ".join(TEXTS[:2]), num_best=2)
    every = [translation, *translation.alternatives]
    scores = [each.score for each in every]
    assert scores == sorted(scores, reverse=True)
    assert len({each.text for each in every}) == len(every)


def test_more_alternatives_than_beams_widen_the_beam(translator):
    narrow = SearchOptions(beam_size=2, max_extra_tokens=6)
    wide = SearchOptions(beam_size=6, max_extra_tokens=6)
    assert translator.translate(TEXTS[0], num_best=6, options=narrow) == translator.translate(
        TEXTS[0], num_best=6, options=wide
    )
    assert not translator.translate(TEXTS[0], options=narrow).alternatives


def test_scores_of_alternatives_include_coverage(tiny_folder, vocabularies):
    torch.manual_seed(3)
    shape = RNNsearchOptions(model_dim=16, embedding_dim=16, maxout_dim=16)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    with torch.no_grad():
        for each in model.parameters():
            each.normal_(std=0.7)
    translator = Translator(replace(tiny_folder.folder, options=shape), model, torch.device("cpu"))
    options = SearchOptions(beam_size=4, coverage_penalty=2.0, max_extra_tokens=4)
    text = TEXTS[0]
    best = translator.translate(text, num_best=4, options=options)
    source = pad_sequences(flatten([translator.encode(text)]), vocabularies.pad_id)
    banned = (vocabularies.target.unk_id,)
    (found,) = search(
        model, source, options, vocabulary_of(vocabularies), num_best=4, banned_ids=banned
    )
    texts = vocabularies.target.decode([each.tokens for each in found])
    expected = dict(zip(texts[::-1], [each.score for each in found][::-1], strict=True))
    scores = {each.text: each.score for each in (best, *best.alternatives)}
    assert scores == pytest.approx({text.strip(): score for text, score in expected.items()})
    plain = translator.translate(text, num_best=4, options=replace(options, coverage_penalty=0.0))
    assert plain.score > best.score + 1


@pytest.mark.parametrize("num_best", [0, -2, 1001, 10**20])
def test_no_translation_cannot_be_wanted(translator, num_best):
    with pytest.raises(OptionError) as caught:
        translator.translate("dog", num_best=num_best)
    assert str(caught.value) == f"num_best is {num_best}: must be from 1 to 1,000"


def test_the_unknown_word_is_never_said(tiny_folder, vocabularies):
    """Not even by a model that likes it best of all."""
    model = copy.deepcopy(tiny_folder.model)
    likes = Translator(tiny_folder.folder, model, torch.device("cpu"))
    hidden = model(make_batch(flatten([[5, 0]]), flatten([[6, 0]]), vocabularies.pad_id)).hidden
    with torch.no_grad():
        model.output.words[vocabularies.target.unk_id] = 50 * hidden[0, 0]
    assert model.output(hidden)[0, 0].argmax() == vocabularies.target.unk_id
    unknown = vocabularies.target.decode([[vocabularies.target.unk_id]])[0]
    assert unknown
    for translation in likes.translate_all(TEXTS, num_best=4):
        assert unknown not in translation.text


# Prefixes


@pytest.mark.parametrize("prefix", ["Le chien", "Un", "grand arbre près", "été ", "Zürich 1987"])
def test_translations_begin_with_the_prefix(translator, prefix):
    for translation in translator.translate_all(TEXTS, num_best=3, prefix=prefix):
        for each in (translation, *translation.alternatives):
            assert each.text.startswith(prefix.strip())


@pytest.mark.parametrize(("max_length", "longest"), [(None, 500), (40, 39)])
def test_a_prefix_that_is_too_long(translator, max_length, longest, monkeypatch):
    monkeypatch.setattr(Translator, "_max_length", max_length)
    encode = translator.folder.vocabularies.target.encode
    lengths = {number: len(encode(["z" * number])[0]) for number in range(2 * longest)}
    fitting = max(number for number, length in lengths.items() if length <= longest)
    translator.translate_all([], prefix="z" * fitting)
    with pytest.raises(OptionError) as caught:
        translator.translate_all([], prefix="z" * (fitting + 1))
    assert str(caught.value) == (
        f"prefix: has {lengths[fitting + 1]} subwords, but {longest} are the most; give fewer words"
    )


def test_only_the_first_piece_of_a_long_text_begins_with_the_prefix(translator):
    longest = max(len(translator.encode(text)) for text in TEXTS[:2])
    short = with_longest(translator, longest)
    whole = short.translate(" ".join(TEXTS[:2]), prefix="Le chien")
    first = translator.translate(TEXTS[0], prefix="Le chien").text
    rest = translator.translate(TEXTS[1]).text
    assert whole.text == f"{first} {rest}".strip()


@pytest.mark.parametrize("prefix", ["", "  "])
def test_an_empty_prefix_is_none(translator, prefix):
    assert translator.translate(TEXTS[0], prefix=prefix) == translator.translate(TEXTS[0])


def test_a_prefix_that_the_subwords_cannot_write(tiny_folder, tmp_path, sentence_pairs):
    """A foreign model without bytes has only “<unk>” for Ω, which the search never says."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([sentence for pair in sentence_pairs for sentence in pair]),
        model_prefix=str(tmp_path / "foreign"),
        vocab_size=80,
        hard_vocab_limit=False,
        minloglevel=4,
    )
    foreign = Subwords.from_file(tmp_path / "foreign.model")
    vocabularies = Vocabularies(foreign, foreign)
    folder = replace(tiny_folder.folder, vocabularies=vocabularies)
    torch.manual_seed(0)
    model = build_model(folder.options, vocabulary_of(vocabularies)).eval()
    translator = Translator(folder, model, torch.device("cpu"))
    assert translator.translate("The dog.").score < 0
    with pytest.raises(OptionError, match="prefix: “Ω” has characters or words that the model can"):
        translator.translate("The dog.", prefix="Ω")


# Closed vocabularies


@pytest.fixture(scope="module")
def closed(tiny_folder, tmp_path_factory, sentence_pairs):
    """A model of words that likes the unknown one best of all, in a folder with a dictionary."""
    sides = [learn_words(side, vocabulary_size=12) for side in zip(*sentence_pairs, strict=True)]
    vocabularies = Vocabularies(*sides, Dictionary({"garden": " jardinet"}))
    shape = replace(tiny_folder.folder.options, tied_embeddings="target")
    config = tiny_folder.folder.config | {"model": to_plain(shape)}
    folder = replace(tiny_folder.folder, vocabularies=vocabularies, options=shape, config=config)
    torch.manual_seed(3)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    hidden = model(make_batch(flatten([[5, 0]]), flatten([[6, 0]]), vocabularies.pad_id)).hidden
    with torch.no_grad():
        model.output.words[vocabularies.target.unk_id] = 50 * hidden[0, 0]
    path = tmp_path_factory.mktemp("closed") / "model"
    write_model(path, folder, model)
    return Translator.load(path, device="cpu")


def test_the_unknown_word_of_a_closed_vocabulary_is_said_and_replaced(closed):
    """By a word of the source as it is written there, or by its translation."""
    plain = replace(closed.options, replace_unknown=False)
    texts = ["Zzyzx Qom", "The garden sees Qom.", "garden"]
    said = closed.translate_all(texts, options=plain)
    found = closed.translate_all(texts)
    known = set(closed.folder.vocabularies.target.pieces(range(3, 15)))
    assert sum(each.text.count(UNKNOWN) for each in said) > 3
    for text, before, after in zip(texts, said, found, strict=True):
        assert UNKNOWN in before.text
        assert UNKNOWN not in after.text
        assert after.score == before.score
        source = {token.strip() for token in split_words(text)} - {"garden"}
        allowed = source | {"jardinet"} | {each.strip("▁") for each in known}
        words = {token.strip() for token in split_words(after.text)}
        assert words <= allowed
        assert words & (source | {"jardinet"})


def test_the_pieces_of_a_long_text_are_copied_from(closed, monkeypatch):
    unknown = closed.folder.vocabularies.target.unk_id
    pretend_found(monkeypatch, ([unknown], -1.0))
    text = "Zzyzx Qom. Abc Def. Ghi"
    short = with_longest(closed, 4)
    assert len(cut(short, text)) == 3
    one, two, three = short.translate(text).text.split(" ")
    assert one in ("Zzyzx", "Qom", ".")
    assert two in ("Abc", "Def", ".")
    assert three == "Ghi"


def test_a_prefix_with_a_word_that_is_unknown(closed):
    with pytest.raises(OptionError) as caught:
        closed.translate("The dog.", prefix="Zzyzx")
    assert str(caught.value) == (
        "prefix: “Zzyzx” has characters or words that the model cannot write"
    )


def test_the_way_from_the_command_to_the_compiled_search_is_short(
    tiny_folder, tmp_path, monkeypatch, capsys
):
    """At most nine calls, and no module is left and entered again."""
    (tmp_path / "lines").write_text("The dog sees a house.\n")
    ways, find = [], slot_search.search
    folder = str(Path(dragoman.__file__).parent)

    def spy(*given):
        frames = [each.frame.f_code for each in inspect.stack()[1:]]
        ways.append([each for each in frames if each.co_filename.startswith(folder)])
        return find(*given)

    monkeypatch.setattr(slot_search, "search", spy)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    main(["translate", str(tiny_folder.path), str(tmp_path / "lines"), "--device", "cpu"])
    assert capsys.readouterr().out.count("\n") == 1
    files = [each.co_filename for each in ways[0]]
    assert len(files) <= 9
    assert len(set(files)) == len(list(itertools.groupby(files)))
