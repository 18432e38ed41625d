"""The task of roles: what is told, what heads learn to look at."""

import pytest
import torch

from dragoman.paper.tasks.roles import ROLES, RoleReader, learn_roles, sample_sentences


def test_sentences_have_one_word_of_each_role():
    sentences = sample_sentences(40, torch.Generator().manual_seed(1))
    for symbols, roles, answers in zip(*sentences, strict=True):
        for index in range(len(ROLES)):
            assert symbols[roles == index + 1].tolist() == [answers[index]]
        assert (roles == 0).sum() == len(symbols) - len(ROLES)


def test_untrained_readers_do_not_care_about_order():
    torch.manual_seed(1)
    model, sentences = RoleReader(4), sample_sentences(5, torch.Generator().manual_seed(1))
    order = torch.randperm(sentences.symbols.size(1))
    turned = sentences._replace(
        symbols=sentences.symbols[:, order], roles=sentences.roles[:, order]
    )
    torch.testing.assert_close(model(sentences), model(turned))


def test_several_heads_beat_one():
    one = learn_roles(1, seed=2, num_steps=150)
    many = learn_roles(8, seed=2, num_steps=150)
    assert many.accuracy > one.accuracy + 0.1
    assert len(many.attention) == 8
    for shares in (*one.attention, *many.attention):
        assert sum(shares) == pytest.approx(1, abs=1e-4)
