"""Names and orders of subwords in other tools."""

import pytest

from dragoman.errors import FolderError
from dragoman.exchange.names import (
    build_vocabularies,
    marian_order,
    names_by_id,
    names_of,
    own_order,
    plain_marks,
)


def test_marians_order_and_ours_undo_each_other(subwords, tmp_path):
    names = names_of(subwords, place=tmp_path)
    theirs = [names[piece_id] for piece_id in marian_order(subwords)]
    assert (theirs[0], theirs[1], theirs[-1]) == ("</s>", "<unk>", "<pad>")
    assert [theirs[piece_id] for piece_id in own_order(theirs, place="here")] == names
    vocabularies = build_vocabularies((subwords.to_bytes(),) * 2, (names, names), place=tmp_path)
    assert vocabularies.is_joint
    assert vocabularies.source.to_bytes() == subwords.to_bytes()


def test_marks_lose_their_space():
    assert plain_marks(["▁>>fra<<", "▁a", ">>", "<<"]) == [">>fra<<", "▁a", ">>", "<<"]


@pytest.mark.parametrize("ids", [{"a": 0, "b": 2}, {"a": 0, "b": 0}, {"a": "0"}, {"a": -1}])
def test_ids_must_count_up(ids):
    with pytest.raises(FolderError, match="must count up from 0; get the model again"):
        names_by_id(ids, place="here")


def test_special_entries_must_be_there():
    with pytest.raises(FolderError, match="here: has no entry “<pad>”; get the model again"):
        own_order(["</s>", "<unk>", "a"], place="here")
