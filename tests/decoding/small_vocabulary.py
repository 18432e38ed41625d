"""A vocabulary of a handful of pieces, for everything that can be written with them."""

import re


class SmallVocabulary:
    """Pieces with “▁” for a space; a text is cut into the longest pieces from left to right."""

    eos_id, unk_id, pad_id = 0, 1, 2
    splits_at_spaces = True

    def __init__(self, *pieces):
        self._pieces = ["</s>", "<unk>", "<pad>", *pieces]

    def __len__(self):
        return len(self._pieces)

    def encode(self, texts, num_threads=1):  # noqa: ARG002
        return [self._cut("▁" + text.replace(" ", "▁")) if text else [] for text in texts]

    def _cut(self, text):
        ids = []
        while text:
            fitting = [piece for piece in self._pieces[3:] if text.startswith(piece)]
            piece = max(fitting, key=len, default=None)
            ids.append(self.unk_id if piece is None else self._pieces.index(piece))
            text = text[len(piece or text[0]) :]
        return ids

    def decode(self, ids):
        texts = ["".join(self._pieces[each] for each in row if each > 2) for row in ids]
        return [re.sub("▁+", " ", text).strip() for text in texts]

    def pieces(self, ids):
        return [self._pieces[each] for each in ids]

    def to_bytes(self):
        raise NotImplementedError
