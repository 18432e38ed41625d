"""The engine's cache: rows move in all layers at once, and only those that must."""

import pytest
import torch

from dragoman.decoding.engines.cuda.kv_cache import DecoderKVCache, SourceKVCache
from dragoman.kernels.cuda_search.beam_attention import Heads
from dragoman.models.attention.multihead_attention import KeysAndValues

HEADS = Heads(2, 3, 4, 1.0)


def make_cache(rows, places=5):
    cache = DecoderKVCache.make(2, places, rows, HEADS, torch.zeros(1))
    for each in cache:
        each.copy_(torch.randn(each.shape))
    return cache


@pytest.mark.parametrize(
    "rows", [[0, 1, 2, 3], [3, 1, 1, 0], [2, 3], [3, 0, 0, 1, 2, 2], [1]], ids=str
)
def test_rows_come_from_those_that_were_named(rows):
    cache = make_cache(4)
    before = [each.clone() for each in cache]
    moved = cache.move(torch.tensor(rows), 3)
    for now, old in zip(moved, before, strict=True):
        assert now.shape[2] == len(rows)
        torch.testing.assert_close(now[:, :3], old[:, :3, rows])


def test_what_stays_is_the_same_memory():
    cache = make_cache(4)
    moved = cache.move(torch.tensor([0, 1, 3]), 2)
    assert [each.data_ptr() for each in moved] == [each.data_ptr() for each in cache]


def test_what_a_layer_writes_is_in_the_cache():
    cache = make_cache(4)
    assert cache.layer(0).keys.shape == (4, 2, 5, 3)
    cache.layer(1).keys[:, :, 4] = 7.0
    assert (cache.keys[1, 4] == 7).all()


def make_layers():
    return [KeysAndValues(torch.randn(4, 2, 5, 3), torch.randn(4, 2, 5, 4)) for _ in range(2)]


def test_sources_are_seen_as_attention_wants_them():
    layers = make_layers()
    cache = SourceKVCache.of_layers(iter(layers), 2, 6)
    for index, layer in enumerate(layers):
        for seen, given in zip(cache.layer(index), layer, strict=True):
            torch.testing.assert_close(seen[:, :, :5], given)
            assert not seen[:, :, 5].any()


@pytest.mark.parametrize("sentences", [[0, 1, 2, 3], [0, 3], [3, 1], [2]], ids=str)
@pytest.mark.parametrize("places", [6, 2])
def test_other_sources_are_forgotten_and_the_rest_stays_in_one_stretch(sentences, places):
    layers = make_layers()
    kept = SourceKVCache.of_layers(iter(layers), 2, 6).keep(torch.tensor(sentences), places)
    for index, layer in enumerate(layers):
        for seen, given in zip(kept.layer(index), layer, strict=True):
            assert seen.shape[2] == places
            assert seen.is_contiguous()
            torch.testing.assert_close(seen[:, :, :5], given[sentences][:, :, :places])


@pytest.mark.parametrize(("length", "capacity", "places"), [(4, 90, 5), (5, 90, 21), (5, 7, 7)])
def test_room_grows_when_it_is_filled(length, capacity, places):
    cache = make_cache(4)
    before = [each.clone() for each in cache]
    grown = cache.grow(length, capacity)
    for now, old in zip(grown, before, strict=True):
        assert now.shape == (2, places, *old.shape[2:])
        torch.testing.assert_close(now[:, :length], old[:, :length])
