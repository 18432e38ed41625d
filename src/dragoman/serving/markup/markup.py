"""Markup: parse into translatable segments, rebuild with their translations."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.serving.markup.markup_elements import count_breaks, is_opaque, match_elements
from dragoman.serving.markup.markup_segments import Segment, SegmentBuilder
from dragoman.serving.markup.markup_tokens import Token, split_html, split_xml
from dragoman.serving.markup.tag_attributes import split_attributes
from dragoman.serving.markup.tag_placement import place_tags
from dragoman.serving.markup.tag_rules import HTML, TagRules, rules_of_xml
from dragoman.serving.service_types import Span

# What points to a note, and in how many tokens of markup it may stand.
_REFERENCE = re.compile(r"\d{1,3}(?:[,-]\d{1,3})?|\[[^\[\]\s]{1,8}(?:\s\d{1,3})?\]|[*†‡§]{1,3}")
_LONGEST_REFERENCE = 16


@dataclass(frozen=True, kw_only=True)
class ParsedMarkup:
    """Parsed markup.

    Parameters
    ----------
    parts : tuple[str | Segment, ...]
        In order what stays as it is, and what is to be translated.
    """

    parts: tuple[str | Segment, ...]

    @property
    def segments(self) -> list[str]:
        """List the texts of the segments, without tags."""
        return [each.text for each in self._walk()]

    def rebuild(self, translations: Sequence[tuple[str, Iterable[Span]]]) -> str:
        """Rebuild the markup with translated segments.

        Parameters
        ----------
        translations : Sequence[tuple[str, Iterable[Span]]]
            For each of `segments` its translation, and which characters translate which: source
            begin and end, target begin and end. Without any spans, words are taken to stand in
            the same order.
        """
        expected = len(self.segments)
        assert len(translations) == expected, f"{len(translations)} translations of {expected}"
        return self._rebuild(iter(translations))

    def _walk(self) -> Iterator[Segment]:
        for part in self.parts:
            if isinstance(part, Segment):
                yield part
                for _, subflow in part.subflows:
                    yield from subflow._walk()

    def _rebuild(self, translations: Iterator[tuple[str, Iterable[Span]]]) -> str:
        written = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
                continue
            translation, spans = next(translations)
            for tag, subflow in part.subflows:
                tag.opening = subflow._rebuild(translations)
            written.append(
                place_tags(
                    part.root,
                    part.text,
                    translation,
                    spans,
                    encode=part.encode,
                    around=(part.before, part.after),
                )
            )
        return "".join(written)


def parse_markup(
    text: str,
    kind: Literal["html", "xml"],
    ignore_tags: frozenset[str] = frozenset(),
    *,
    splitting_tags: frozenset[str] = frozenset(),
    inline_tags: frozenset[str] = frozenset(),
    finds_outline: bool = True,
) -> ParsedMarkup:
    """Parse HTML or XML into segments.

    Parameters
    ----------
    text : str
        HTML or XML, a document or a part of one.
    kind : Literal["html", "xml"]
        Which.
    ignore_tags : frozenset[str]
        Elements whose content stays as it is. In HTML also scripts, code and whatever has the
        attribute ``translate="no"`` or the class “notranslate” stays.
    splitting_tags : frozenset[str]
        Elements at which a sentence ends, besides those that are known.
    inline_tags : frozenset[str]
        Elements at which it does not end.
    finds_outline : bool
        Whether, in XML, it also ends at elements around which there are only other elements.

    Notes
    -----
    Wrong HTML is read as well as may be; wrong XML is refused. What is left is never changed: a
    text of which nothing is to be translated is rebuilt letter by letter.
    """
    if kind == "xml":
        rules = rules_of_xml(
            splitting_tags=splitting_tags, inline_tags=inline_tags, finds_outline=finds_outline
        )
        return parse_tokens(list(split_xml(text)), replace(rules, opaque=ignore_tags))
    rules = replace(
        HTML,
        opaque=HTML.opaque | {each.lower() for each in ignore_tags},
        breaks=(HTML.breaks | splitting_tags) - inline_tags,
    )
    return parse_tokens(list(split_html(text)), rules)


def parse_tokens(tokens: Sequence[Token], rules: TagRules) -> ParsedMarkup:
    """Parse tokens into segments."""
    return _Parser(tokens, rules).parse(0, len(tokens))


class _Parser:
    """Groups tokens into segments and untranslated stretches."""

    def __init__(self, tokens: Sequence[Token], rules: TagRules) -> None:
        self._tokens = tokens
        self._rules = rules
        self._elements = match_elements(tokens, rules)
        self._num_breaks = count_breaks(tokens, self._elements, rules)

    def parse(self, begin: int, end: int) -> ParsedMarkup:
        """Parse a range of tokens."""
        parts: list[str | Segment] = []
        run: list[tuple[int, int]] = []  # First and last places of what a sentence goes on over.
        place = begin
        while place < end:
            last = self._find_last(place)
            if self._is_inline(place):
                run.append((place, last))
            else:
                parts += self._close(run)
                parts += self._leave(place, last)
                run = []
            place = last + 1
        parts += self._close(run)
        return ParsedMarkup(parts=tuple(parts))

    def _find_last(self, place: int) -> int:
        """Return the last token of an opaque element or subflow, else the token itself."""
        token = self._tokens[place]
        is_whole = (
            is_opaque(token, self._rules) or self._is_subflow(place) or self._is_reference(place)
        )
        return self._elements.lasts[place] if is_whole else place

    def _is_subflow(self, place: int) -> bool:
        token = self._tokens[place]
        is_one = token.kind == "start" and token.name in self._rules.subflows
        return is_one and not is_opaque(token, self._rules)

    def _is_reference(self, place: int) -> bool:
        """Whether an element is but a mark that points to a note, as in ``<sup>[1]</sup>``."""
        last = self._elements.lasts[place]
        is_short = 1 < last - place <= _LONGEST_REFERENCE and self._elements.is_closed[place]
        if self._rules.raised is None or self._tokens[place].kind != "start" or not is_short:
            return False
        texts = (each.raw for each in self._tokens[place : last + 1] if each.kind == "text")
        mark = _REFERENCE.fullmatch("".join(texts).strip())
        if mark is None or not self._is_inline(place):
            return False
        is_raised = self._rules.raised.search(self._raw(place, last)) is not None
        return is_raised or mark.group().startswith("[")

    def _is_inline(self, place: int) -> bool:
        """Whether a token’s element is inline throughout, so that a sentence spans it."""
        begin, last = place, self._elements.lasts[place]
        if self._tokens[place].kind == "end":
            begin, last = self._elements.begins.get(place, place), place
        return self._num_breaks[last + 1] == self._num_breaks[begin]

    def _raw(self, first: int, last: int) -> str:
        return "".join(token.raw for token in self._tokens[first : last + 1])

    def _leave(self, first: int, last: int) -> list[str | Segment]:
        """Keep tokens unchanged, except the content of subflows."""
        if is_opaque(self._tokens[first], self._rules) or self._is_reference(first):
            return [self._raw(first, last)]
        opening = split_attributes(self._tokens[first], self._rules)
        if not self._is_subflow(first):
            return [*opening, *([self._raw(first + 1, last)] if last > first else [])]
        has_end = self._elements.is_closed[first]
        inner = self.parse(first + 1, last + 1 - has_end)
        closing = [self._raw(last, last)] if has_end else []
        return [*opening, *inner.parts, *closing]

    def _close(self, run: Sequence[tuple[int, int]]) -> list[str | Segment]:
        """Close a run of tokens: a segment, or unchanged if it has no words."""
        first, last = 0, len(run)
        while first < last and self._is_blank(run[first][0]):
            first += 1
        while first < last and self._is_blank(run[last - 1][0]):
            last -= 1
        segment = self._build(run[first:last])
        if segment is None:
            return [part for each in run for part in self._leave(*each)]
        around = ["".join(self._raw(*each) for each in part) for part in (run[:first], run[last:])]
        return [around[0], segment, around[1]]

    def _build(self, run: Sequence[tuple[int, int]]) -> Segment | None:
        if not run:
            return None
        builder = SegmentBuilder(self._rules, self._may_hold(run[0][0]))
        for place, last in run:
            token = self._tokens[place]
            if self._is_subflow(place):
                builder.add_leaf("", subflow=ParsedMarkup(parts=tuple(self._leave(place, last))))
            elif place < last or token.kind == "other":
                builder.add_leaf(self._raw(place, last), token.name)
            elif token.kind == "empty":
                builder.add_leaf(token.raw, token.name, self._read_tag(token))
            elif token.kind == "start":
                builder.add_start(token, self._read_tag(token))
            elif token.kind == "end":
                builder.add_end(token)
            elif self._may_hold(place):
                builder.add_text(token, self._elements.is_preformatted[place])
            else:
                builder.add_leaf(token.raw)
        return builder.finish()

    def _read_tag(self, token: Token) -> ParsedMarkup | None:
        """Parse the attributes of a tag; None: there is nothing to be translated in them."""
        parts = split_attributes(token, self._rules)
        return ParsedMarkup(parts=tuple(parts)) if len(parts) > 1 else None

    def _is_blank(self, place: int) -> bool:
        """Whether a token is white space between elements."""
        token = self._tokens[place]
        return token.kind == "text" and token.raw.isspace()

    def _may_hold(self, place: int) -> bool:
        """Whether the parent element may contain text."""
        parent, holders = self._elements.parents[place], self._rules.text_holders
        return not holders or (parent >= 0 and self._tokens[parent].name in holders)
