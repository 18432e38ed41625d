"""What is demanded of translations, and what is said of what cannot be."""

import re

import pytest
import sentencepiece
import torch
from tests.decoding.small_vocabulary import SmallVocabulary

from dragoman.decoding.constraints.constraints import Constraints, prepare_constraints
from dragoman.decoding.constraints.glossary import ForbiddenPhrase, Glossary, Term
from dragoman.decoding.constraints.term_automaton import MOST_TERMS
from dragoman.decoding.options import SamplingOptions
from dragoman.errors import OptionError
from dragoman.text.subwords import Subwords

CPU = torch.device("cpu")
TARGET = SmallVocabulary("▁a", "b", "▁b", ".", "▁.")


def prepare(*pairs, vocabulary=TARGET, **rest):
    terms = [Term(*pair, f"g:{number}") for number, pair in enumerate(pairs, start=1)]
    return prepare_constraints(vocabulary, glossary=Glossary(terms), **rest)


def test_terms_are_wanted_where_their_sources_are():
    constraints = prepare(("x", "a"), ("y", "bb")).constraints
    assert [each.text for each in constraints.want("x z y", 9).requirements] == ["a", "bb"]
    assert constraints.want("z", 9).requirements == ()
    assert Constraints().want("x", 9).requirements == ()
    (twice,) = constraints.want("x and X", 9).requirements
    assert twice.times == 2


def test_the_longest_terms_are_left_out_where_there_is_no_room():
    constraints = prepare(("x", "a"), ("y", "bb bb")).constraints
    wanted = constraints.want("x y", 4)
    assert [each.text for each in wanted.requirements] == ["a"]
    assert wanted.notes == (
        "its terms take 5 subwords, but the translation may have 4; translated without “bb bb” "
        "(g:2)",
    )
    assert len(constraints.want("x y", 0).notes) == 2
    assert constraints.want("x y", 5).notes == ()


def test_the_most_terms():
    constraints = prepare(("x", "a")).constraints
    wanted = constraints.want("x " * (MOST_TERMS + 1), 1000)
    assert wanted.requirements[0].times == MOST_TERMS
    assert wanted.notes == (
        f"it has {MOST_TERMS + 1} terms, but {MOST_TERMS} are the most; translated without “a” "
        "(g:1)",
    )


def test_a_term_that_is_forbidden_is_left_out_with_a_warning():
    phrases = (ForbiddenPhrase("B", "f:7"),)
    prepared = prepare(("x", "a b"), ("y", "a"), phrases=phrases)
    assert prepared.warnings == ["g:1: “a b”: “B” is forbidden (f:7); translated without the term"]
    assert [term.target for term in prepared.constraints.glossary.terms] == ["a"]
    assert prepare(("x", "b"), phrases=phrases).constraints.glossary is None


def test_a_term_that_cannot_be_written_is_left_out_with_a_warning(tmp_path, sentence_pairs):
    """A foreign model without bytes has only “<unk>” for Ω."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([sentence for pair in sentence_pairs for sentence in pair]),
        model_prefix=str(tmp_path / "foreign"),
        vocab_size=80,
        hard_vocab_limit=False,
        minloglevel=4,
    )
    foreign = Subwords.from_file(tmp_path / "foreign.model")
    prepared = prepare(("x", "Ω"), ("y", "chien"), vocabulary=foreign)
    assert prepared.warnings == [
        "g:1: “Ω”: has characters or words that the model cannot write; translated without the term"
    ]
    assert [term.target for term in prepared.constraints.glossary.terms] == ["chien"]


def test_samples_cannot_be_made_to_use_terms():
    message = (
        "sample: words drawn at random cannot be made to use a glossary; leave out --sample or "
        "--terms"
    )
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        prepare(("x", "a"), sampling=SamplingOptions())


def test_a_prefix_that_is_forbidden_is_refused():
    phrases = (ForbiddenPhrase("b", "f:1"),)
    constraints = prepare_constraints(TARGET, phrases=phrases).constraints
    constraints.check_prefix("a bb")
    message = "prefix: “A B” has “b”, which f:1 forbids; leave out one of them"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        constraints.check_prefix("A B")
