"""Segments: stretches of inline markup translated as a unit."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.serving.markup.markup_tokens import Token, decode_html, decode_xml, encode_text
from dragoman.serving.markup.tag_placement import Tag
from dragoman.serving.markup.tag_rules import TagRules

if TYPE_CHECKING:
    from dragoman.serving.markup.markup import ParsedMarkup

_SPACE = re.compile(r"[ \t\n\r\f]+")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Text between two breaks with its inline tags.

    Parameters
    ----------
    text : str
        What a person reads of it, without white space around.
    before, after : str
        White space around it.
    root : Tag
        Its elements.
    subflows : tuple[tuple[Tag, ParsedMarkup], ...]
        Elements in it whose content is translated by itself.
    encode : Callable[[str], str]
        Writes its translation so that it is no markup.
    """

    text: str
    before: str
    after: str
    root: Tag
    subflows: "tuple[tuple[Tag, ParsedMarkup], ...]" = ()
    encode: Callable[[str], str] = encode_text


class SegmentBuilder:
    """Builds a segment from tokens.

    Parameters
    ----------
    rules : TagRules
        What elements mean.
    holds_text : bool
        Whether text may stand outside of all elements of the segment.
    """

    def __init__(self, rules: TagRules, holds_text: bool) -> None:
        self._rules = rules
        self._decode = rules.decode or (decode_xml if rules.is_xml else decode_html)
        self._text: list[str] = []
        self._length = 0
        self._root = Tag(holds_text=holds_text)
        self._open = [self._root]
        self._num_texts = [0]  # In each open element.
        self._tags: list[Tag] = []
        self._islands: list[tuple[Tag, ParsedMarkup]] = []
        self._before = self._after = ""
        # The previous character, and the empty elements held until the next.
        self._last = ""
        self._waiting: list[Tag] = []
        self._is_behind_leaf = False

    def add_text(self, token: Token, is_preformatted: bool) -> None:
        """Append text."""
        text = self._decode(token.raw) if token.shown is None else token.shown
        if not text:
            return
        for tag in self._waiting:
            tag.is_spaced_after = text[0].isspace()
        self._waiting = []
        self._last = text[-1]
        self._num_texts[-1] += 1
        whole = text
        if self._rules.collapses_space and not is_preformatted:
            text = _SPACE.sub(" ", text)
        if not self._length:
            if not self._is_behind_leaf:
                self._before += whole[: len(whole) - len(whole.lstrip())]
            text = text.lstrip()
        elif text[0].isspace() and self._text[-1][-1].isspace():
            may_collapse = self._rules.collapses_space or self._is_behind_leaf
            text = text[1:] if may_collapse and not is_preformatted else text
        self._after = ("" if whole.strip() else self._after) + whole[len(whole.rstrip()) :]
        if text:
            self._text.append(text)
            self._length += len(text)
            self._is_behind_leaf = False

    def add_start(self, token: Token, opening: "ParsedMarkup | None" = None) -> None:
        """Open an element, of whose tag parts may be translated by themselves."""
        holders = self._rules.text_holders
        holds_text = not holders or token.name in holders
        self._open.append(self._add(Tag(opening=token.raw, holds_text=holds_text)))
        if opening is not None:
            self._islands.append((self._open[-1], opening))
        self._num_texts.append(0)

    def add_end(self, token: Token) -> None:
        """Close the innermost element."""
        tag = self._open.pop()
        tag.closing = token.raw
        tag.end = self._length
        num_texts = self._num_texts.pop()
        self._num_texts[-1] += num_texts
        if num_texts == 0 and self._open[-1].holds_text:
            self._wait(tag)

    def add_leaf(self, raw: str, name: str = "", subflow: "ParsedMarkup | None" = None) -> None:
        """Append an element without text of its own."""
        tag = self._add(Tag(opening=raw, holds_text=False))
        if subflow is not None:
            self._islands.append((tag, subflow))
        if name in self._rules.spaces:
            tag.is_space = True
            if self._length and not self._text[-1][-1].isspace():
                self._text.append(" ")
                self._length += 1
            return
        if self._open[-1].holds_text:  # Where no text can be, nothing has spaces beside it.
            self._wait(tag)

    def finish(self) -> Segment | None:
        """Finish the segment.

        Returns
        -------
        Segment | None
            The segment; None if it has no letter or digit, so that there is nothing to translate.
        """
        assert len(self._open) == 1
        whole = "".join(self._text)
        if not any(each.isalnum() for each in whole):
            return None
        text = whole.rstrip()
        for tag in (self._root, *self._tags):
            tag.begin, tag.end = min(tag.begin, len(text)), min(tag.end, len(text))
        self._root.end = len(text)
        return Segment(
            text=text,
            before=self._before,
            after="" if self._is_behind_leaf else self._after,
            root=self._root,
            subflows=tuple(self._islands),
            encode=self._rules.encode or encode_text,
        )

    def _add(self, tag: Tag) -> Tag:
        tag.begin = tag.end = self._length
        tag.is_spaced_before = self._last.isspace()
        self._open[-1].inner.append(tag)
        self._tags.append(tag)
        return tag

    def _wait(self, tag: Tag) -> None:
        """Hold an empty element until the next character is known."""
        self._waiting = [tag]
        self._last = ""
        self._is_behind_leaf = True
