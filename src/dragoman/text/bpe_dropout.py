"""BPE-dropout: byte-pair encoding that skips merges at random.

Provilkov et al. (2020): a model that meets “unrelated” now whole, now as “un|related”, now as
“un|rel|ated”, learns what the parts mean.
"""

from collections.abc import Sequence

from dragoman.errors import OptionError
from dragoman.text.specification import SPACE_MARK, is_merged, read_merges
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies

LONGEST_DROPPED = 100
"""Words of more characters, which are addresses for the most part, keep their segmentation."""

# What a person wrote as U+2581 is no space. No piece has a line break, so it merges with nothing.
_WRITTEN_MARK = "\n"


# How good a merge is (the less the better), and where its two pieces meet, begin and end.
_Merge = tuple[float, int, int, int]


class _Segmentation:
    """A partly merged word, and its possible merges in order of priority."""

    __slots__ = ("cuts", "merges", "next", "number")

    def __init__(self, cuts: int, merges: list[_Merge]) -> None:
        merges.sort()
        self.cuts = cuts  # a bit for each place where a piece begins or ends
        self.merges = merges
        self.next: list[_Segmentation | None] = [None] * len(merges)
        self.number = -1


def check_merges(vocabularies: Vocabularies) -> None:
    """Refuse vocabularies that do not support BPE-dropout.

    Raises
    ------
    OptionError
        If one is not made of byte pairs that are cut at spaces.
    """
    for each in vocabularies:
        if not (
            isinstance(each, Subwords) and each.splits_at_spaces and is_merged(each.to_bytes())
        ):
            raise OptionError(
                "bpe_dropout: the subwords are not byte pairs of Dragoman's making, which are cut "
                "at spaces; leave --bpe-dropout out, or --subwords so that they are learnt"
            )


class BytePairs:
    """The merges of a subword model.

    Parameters
    ----------
    subwords : Subwords
        Those of `train_subwords`, or any that `check_merges` accepts.

    Notes
    -----
    Before each merge, every possible one is dropped with the probability p; of the others the one
    with the best score, and of equal ones the leftmost, is done; if all are dropped, the word stays
    as it is. Which one is done depends only on how many of the best are dropped before one is not:
    a number that is n or more with the probability pⁿ, and that is all the randomness a merge
    takes. Without any dropped this is what SentencePiece does.
    """

    def __init__(self, subwords: Subwords) -> None:
        self._subwords = subwords
        merges = read_merges(subwords.to_bytes())
        self._ids = {piece: piece_id for piece, (piece_id, _) in merges.items()}
        self._ranks = {piece: -score for piece, (_, score) in merges.items()}
        self._byte_ids = subwords.byte_ids

    def count_merges(self, word: str) -> int:
        """Bound the number of merges in a word.

        Returns
        -------
        int
            One for each of its characters; none if it is too long to be dropped.
        """
        return len(word) if len(word) <= LONGEST_DROPPED else 0

    def segment(
        self, word: str, num_dropped: Sequence[Sequence[int]]
    ) -> tuple[list[list[int]], list[int]]:
        """Segment a word several times with merges dropped.

        Parameters
        ----------
        word : str
            A word between spaces, normalised.
        num_dropped : Sequence[Sequence[int]]
            For each time, how many of the best merges are dropped before one is done: a number for
            each of `count_merges`.

        Notes
        -----
        What merges lead to is remembered while the word is segmented again: most times take the
        same ways.
        """
        if not word:
            return [[]], [0] * len(num_dropped)
        if len(word) > LONGEST_DROPPED:
            return self._subwords.encode([word]), [0] * len(num_dropped)
        text = SPACE_MARK + word.replace(SPACE_MARK, _WRITTEN_MARK)
        first = self._begin(text)
        known = {first.cuts: first}
        found: list[list[int]] = []
        numbers: list[int] = []
        for each in num_dropped:
            segmentation = first
            for skipped in each:
                if skipped >= len(segmentation.next):
                    break
                following = segmentation.next[skipped]
                if following is None:
                    following = self._merge(text, segmentation, skipped, known)
                segmentation = following
            if segmentation.number < 0:
                segmentation.number = len(found)
                found.append(self._to_ids(text, segmentation.cuts))
            numbers.append(segmentation.number)
        return found, numbers

    def _begin(self, text: str) -> _Segmentation:
        """Split a word into characters."""
        possible = []
        for place in range(1, len(text)):
            rank = self._ranks.get(text[place - 1 : place + 1])
            if rank is not None:
                possible.append((rank, place, place - 1, place + 1))
        return _Segmentation((1 << len(text) + 1) - 1, possible)

    def _merge(
        self, text: str, before: _Segmentation, skipped: int, known: dict[int, _Segmentation]
    ) -> _Segmentation:
        """Apply the next merge that is not dropped."""
        _, place, start, end = before.merges[skipped]
        cuts = before.cuts ^ 1 << place
        after = known.get(cuts)
        if after is None:
            merges = [each for each in before.merges if each[3] <= start or each[2] >= end]
            if start:
                first = (cuts & (1 << start) - 1).bit_length() - 1
                rank = self._ranks.get(text[first:end])
                if rank is not None:
                    merges.append((rank, start, first, end))
            if end < len(text):
                later = cuts >> end + 1
                last = end + (later & -later).bit_length()
                rank = self._ranks.get(text[start:last])
                if rank is not None:
                    merges.append((rank, end, start, last))
            after = known[cuts] = _Segmentation(cuts, merges)
        before.next[skipped] = after
        return after

    def _to_ids(self, text: str, cuts: int) -> list[int]:
        ids: list[int] = []
        start = 0
        for end in range(1, len(text) + 1):
            if not cuts >> end & 1:
                continue
            piece, start = text[start:end], end
            piece_id = self._ids.get(piece)
            if piece_id is not None:
                ids.append(piece_id)
                continue
            written = SPACE_MARK if piece == _WRITTEN_MARK else piece
            ids.extend(self._byte_ids[byte] for byte in written.encode())
        return ids
