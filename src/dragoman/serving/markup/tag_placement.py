"""Place inline tags in a translation by word alignment."""

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.serving.service_types import Span

# Ideographs, syllables written without spaces, and marks are units of their own.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = (
    "!-#%-*,-/:-@[-^`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2010-\u205e\u3001-"
    "\u303f\uff01-\uff0f\uff1a-\uff20\u061b-\u061f\u06d4\u0964\u0965"
)
_UNIT = re.compile(rf"[^\s{_MARKS}{_UNSPACED}]+|\S")
_NEEDS_NO_SPACE = re.compile(r"[\s.,;:!?)\]}…”’»。、，！？]")
_WORDLESS_MARKS = re.compile(rf"[{_MARKS}]{{0,9}}+")
_WORDLESS = re.compile(rf"[\s{_MARKS}]*+")


@dataclass(kw_only=True, eq=False, slots=True)
class Tag:
    """An inline element and its span in the source sentence.

    Parameters
    ----------
    opening, closing : str
        What is written before and after its content.
    begin, end : int
        The characters of the sentence that were in it.
    holds_text : bool
        Whether text may stand in it; otherwise only in elements inside.
    is_spaced_before, is_spaced_after : bool
        Of an element without text: whether white space was beside it.
    is_space : bool
        Whether it stands for white space itself.
    inner : list[Tag]
        The elements in it, in order.
    """

    opening: str = ""
    closing: str = ""
    begin: int = 0
    end: int = 0
    holds_text: bool = True
    is_spaced_before: bool = False
    is_spaced_after: bool = False
    is_space: bool = False
    inner: list["Tag"] = field(default_factory=list)
    number: int = field(default=-1, init=False)
    last_number: int = field(default=-1, init=False)
    has_words: bool = field(default=False, init=False)
    has_own_words: bool = field(default=False, init=False)
    can_hold: bool = field(default=False, init=False)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word or punctuation mark of the translation, and the element of its source word."""

    begin: int
    end: int
    owner: int


def place_tags(
    root: Tag,
    source: str,
    translation: str,
    spans: Iterable[Span],
    *,
    encode: Callable[[str], str],
    around: tuple[str, str] = ("", ""),
) -> str:
    """Write a translation with the tags of its source sentence.

    Parameters
    ----------
    root : Tag
        The sentence with its elements; its own tags may be empty.
    source : str
        The sentence.
    translation : str
        What it became.
    spans : Iterable[Span]
        Which characters translate which: source begin and end, target begin and end.
    encode : Callable[[str], str]
        Writes text so that it is no markup.
    around : tuple[str, str]
        White space to be put before and after the translation in place of its own.

    Returns
    -------
    str
        The translation with every tag of the source once, each element inside of the one that it
        was inside of, for whatever spans.

    Notes
    -----
    Each word of the translation belongs to the element of the source word that it is linked to. An
    element then takes of its words the longest stretch in which no other element has words, so that
    it need not be written twice; the rest loses its emphasis, not its text. An element without
    words goes behind the word that translates the one before it. Without any spans, words are taken
    to stand in the same order. The cost grows with the length of the text times the depth of
    elements.
    """
    shift = -(len(translation) - len(translation.lstrip()))
    translation = translation.strip()
    if not root.holds_text:  # White space too must stand in an element.
        shift += len(around[0])
        translation = f"{around[0]}{translation}{around[1]}" if translation else ""
        around = ("", "")
    shifted = [(*each[:2], each[2] + shift, each[3] + shift) for each in spans]
    visible = [0, *itertools.accumulate(not each.isspace() for each in source)]
    _number(root, 0, visible)
    owners = _owners(root, len(source))
    positions = _align(source, translation, shifted, owners)
    units = _cut_units(translation, positions, owners)
    writer = _Writer(visible, translation, units, _anchors(units, positions, len(source)), encode)
    written = writer.write(root, 0, len(units), 0, len(translation))
    return f"{encode(around[0])}{written}{encode(around[1])}"


def _number(tag: Tag, number: int, visible: Sequence[int]) -> int:
    """Assign numbers to elements in document order and mark those that have words.

    `visible` counts the characters before each place that are no white space.
    """
    tag.number = number
    place, own = tag.begin, False
    for each in tag.inner:
        number = _number(each, number + 1, visible)
        own = own or visible[place] < visible[each.begin]
        place = each.end
    tag.last_number = number
    tag.has_own_words = own or visible[place] < visible[tag.end]
    tag.has_words = tag.has_own_words or any(each.has_words for each in tag.inner)
    tag.can_hold = tag.holds_text or any(each.can_hold for each in tag.inner)
    return number


def _owners(root: Tag, length: int) -> list[int]:
    """Return the innermost element of each source character."""
    owners = [root.number] * length
    waiting = list(root.inner)
    for each in waiting:  # Outer elements come before inner ones, which write over them.
        owners[each.begin : each.end] = [each.number] * (each.end - each.begin)
        waiting.extend(each.inner)
    return owners


def _align(
    source: str, translation: str, spans: Iterable[Span], owners: Sequence[int]
) -> list[int]:
    """Return for each character of the translation its source position, or −1."""
    refined = [
        piece
        for begin, end, target_begin, target_end in spans
        if 0 <= begin < end <= len(source) and 0 <= target_begin < target_end <= len(translation)
        for part in _refine(source, translation, (begin, end, target_begin, target_end))
        for piece in _split_word(source, translation, part, owners)
    ]
    if not refined:
        scale = len(source) / max(len(translation), 1)
        return [
            -1 if character.isspace() else min(int((place + 0.5) * scale), len(source) - 1)
            for place, character in enumerate(translation)
        ]
    positions = [-1] * len(translation)
    # Narrower targets first, then longer source words; the first assignment wins.
    refined.sort(key=lambda each: (each[3] - each[2], each[0] - each[1]))
    free = list(range(len(translation) + 1))
    for begin, end, target_begin, target_end in refined:
        is_copy = source[begin:end] == translation[target_begin:target_end]
        place = _find_free(free, target_begin)
        while place < target_end:
            offset = place - target_begin if is_copy else (end - begin) // 2
            positions[place] = begin + offset
            free[place] = place + 1
            place = _find_free(free, place)
    return positions


def _find_free(free: list[int], place: int) -> int:
    """Find the next unassigned position, with path compression (union–find)."""
    end = place
    while free[end] != end:
        end = free[end]
    while free[place] != end:
        free[place], place = end, free[place]
    return end


def _refine(source: str, translation: str, span: Span) -> list[Span]:
    """Refine a span: link its words to each other and its punctuation to each other."""
    begin, end, target_begin, target_end = span
    word_begin, word_end = _find_core(source, begin, end)
    target_word_begin, target_word_end = _find_core(translation, target_begin, target_end)
    if word_begin >= word_end or target_word_begin >= target_word_end:
        return [span]
    parts = [
        (word_begin, word_end, target_word_begin, target_word_end),
        (begin, word_begin, target_begin, target_word_begin),
        (word_end, end, target_word_end, target_end),
    ]
    return [each for each in parts if each[0] < each[1] and each[2] < each[3]]


def _split_word(source: str, translation: str, span: Span, owners: Sequence[int]) -> list[Span]:
    """Split the span of a word at the tags inside it.

    A part that is in the translation as it was is linked to itself. Letters between such parts
    share what is left in proportion; a number that is not there any more has no part in it.
    """
    begin, end, target_begin, target_end = span
    borders = [place for place in range(begin + 1, end) if owners[place] != owners[place - 1]]
    word, target = source[begin:end], translation[target_begin:target_end]
    if not borders or word == target or any(map(str.isspace, word + target)):
        return [span]
    parts: list[Span] = []
    waiting: list[tuple[int, int]] = []
    place = target_begin
    for first, last in itertools.pairwise((begin, *borders, end)):
        found = _find_copy(source[first:last], translation, place, target_end)
        if last == end and found < 0 and target.endswith(source[first:last]):
            found = target_end - (last - first)
        if found >= place:
            parts += _share_out(waiting, place, found)
            place = found + last - first
            parts.append((first, last, found, place))
            waiting = []
        elif any(map(str.isalpha, source[first:last])):
            waiting.append((first, last))
    return parts + _share_out(waiting, place, target_end)


def _find_copy(part: str, translation: str, begin: int, end: int) -> int:
    """Find a part of a word in its translation, letters at the beginning alone; −1: nowhere."""
    if any(map(str.isalpha, part)):
        return begin if translation.startswith(part, begin, end) else -1
    return translation.find(part, begin, end)


def _share_out(parts: Sequence[tuple[int, int]], begin: int, end: int) -> list[Span]:
    """Link parts of a word to parts of a stretch in proportion, each to a character at least."""
    spans = []
    rest = sum(last - first for first, last in parts)
    for index, (first, last) in enumerate(parts):
        others = len(parts) - 1 - index
        size = max(1, round((end - begin) * (last - first) / rest))
        size = end - begin if not others else min(size, end - begin - others)
        if size > 0:
            spans.append((first, last, begin, begin + size))
            begin += size
        rest -= last - first
    return spans


def _find_core(text: str, begin: int, end: int) -> tuple[int, int]:
    """Strip punctuation from both ends of a span."""
    marks = _WORDLESS.match(text, begin, end)
    assert marks is not None
    while end > marks.end() and _WORDLESS.fullmatch(text, end - 1, end):
        end -= 1
    return marks.end(), end


def _cut_units(translation: str, positions: Sequence[int], owners: Sequence[int]) -> list[_Unit]:
    """Split a translation into words and marks, also where a copied word contained a tag."""
    units: list[_Unit] = []
    for match in _UNIT.finditer(translation):
        begin = match.start()
        for place in range(begin, match.end()):
            owner = _owner(positions[place], owners)
            is_last = place + 1 == match.end()
            if is_last or _owner(positions[place + 1], owners) != owner:
                units.append(_Unit(begin, place + 1, owner))
                begin = place + 1
    return units


def _owner(position: int, owners: Sequence[int]) -> int:
    return -1 if position < 0 else owners[position]


def _anchors(units: Sequence[_Unit], positions: Sequence[int], length: int) -> list[int]:
    """Return for each source position the number of units before its counterpart.

    It is the unit of the source word before it, and those up to it.
    """
    counts = [0] * (length + 1)
    for index, unit in enumerate(units, start=1):
        position = positions[unit.begin]
        if position >= 0:
            counts[position + 1] = max(counts[position + 1], index)
    for place in range(1, length + 1):
        counts[place] = counts[place] or counts[place - 1]
    return counts


@dataclass(frozen=True, slots=True)
class _Writer:
    visible: Sequence[int]
    translation: str
    units: Sequence[_Unit]
    anchors: Sequence[int]
    encode: Callable[[str], str]

    def write(self, tag: Tag, first: int, last: int, begin: int, end: int) -> str:
        """Write an element around a range of units."""
        written = [tag.opening]
        placed = self._place(tag, first, last)
        place = begin
        borders = self._borders(placed, end)
        for inner, inner_first, inner_last in placed:
            inner_begin, inner_end = self._bounds(inner, inner_first, inner_last, (first, last))
            if not tag.holds_text:  # Then there is nothing to be written between elements.
                inner_begin = place
                inner_end = next(borders) if inner_first < inner_last else place
            inner_begin = min(max(inner_begin, place), end)
            inner_end = min(max(inner_end, inner_begin), end)
            if inner_begin > place:
                written.append(self.encode(self.translation[place:inner_begin]))
            content = self.write(inner, inner_first, inner_last, inner_begin, inner_end)
            if tag.holds_text and inner_first == inner_last:
                is_free = inner_begin > begin and not written[-1][-1:].isspace()
                content = self._space(inner, content, inner_begin, is_free)
            if content:
                written.append(content)
            place = inner_end
            if inner.is_space and place < end and self.translation[place].isspace():
                place += 1
        written += [self.encode(self.translation[place:end]), tag.closing]
        return "".join(written)

    def _borders(self, placed: Sequence[tuple[Tag, int, int]], end: int) -> Iterator[int]:
        """Find where elements end that share all characters: white space goes behind them.

        Where an element without words stands straight behind one, such as the mark of a footnote,
        it goes to the next.
        """
        wordy = [index for index, (_, first, last) in enumerate(placed) if first < last]
        for one, other in itertools.pairwise(wordy):
            is_beside = any(not each[0].is_spaced_before for each in placed[one + 1 : other])
            before, behind = self.units[placed[one][2] - 1], self.units[placed[other][1]]
            yield before.end if is_beside else behind.begin
        yield end

    def _space(self, tag: Tag, content: str, place: int, is_free: bool) -> str:
        """Restore the white space around an empty element."""
        if tag.is_spaced_before and is_free:
            content = f" {content}"
        following = self.translation[place : place + 1]
        if tag.is_spaced_after and following and not _NEEDS_NO_SPACE.match(following):
            content = f"{content} "
        return content

    def _bounds(self, tag: Tag, first: int, last: int, around: tuple[int, int]) -> tuple[int, int]:
        """Return the characters that an element encloses."""
        if first < last:
            return self.units[first].begin, self.units[last - 1].end
        goes_ahead = tag.is_spaced_before and not tag.is_spaced_after and first < around[1]
        if first > around[0] and not goes_ahead:
            place = self.units[first - 1].end
            if tag.is_space:  # Marks that follow a word stand before the space.
                place = self._find_space(place)
            return place, place
        begin = self.units[first].begin if goes_ahead else 0
        return begin, begin

    def _find_space(self, place: int) -> int:
        """Find the white space behind the marks that follow a word, else the place itself."""
        marks = _WORDLESS_MARKS.match(self.translation, place)
        is_there = marks is not None and self.translation[marks.end() : marks.end() + 1].isspace()
        return marks.end() if marks is not None and is_there else place

    def _place(self, tag: Tag, first: int, last: int) -> list[tuple[Tag, int, int]]:
        """Distribute the units of an element over its child elements, in output order."""
        chosen = self._choose_stretches(tag, first, last)
        stretches = sorted(chosen.values())
        placed = [(begin, end, index) for index, (begin, end) in chosen.items()]
        for index, inner in enumerate(tag.inner):
            if index not in chosen:
                place = self._find_place(tag, inner, first, last)
                at = bisect.bisect_right(stretches, (place, last + 1)) - 1
                if at >= 0 and stretches[at][0] < place < stretches[at][1]:
                    begin, end = stretches[at]
                    place = begin if place - begin < end - place else end
                placed.append((place, place, index))
        placed.sort()
        return [(tag.inner[index], begin, end) for begin, end, index in placed]

    def _find_place(self, tag: Tag, inner: Tag, first: int, last: int) -> int:
        """Find the position of an element without words."""
        if self.visible[tag.begin] == self.visible[inner.begin]:
            return first
        if self.visible[inner.end] == self.visible[tag.end]:
            return last
        return min(max(self.anchors[inner.begin], first), last)

    def _choose_stretches(self, tag: Tag, first: int, last: int) -> dict[int, tuple[int, int]]:
        """Choose the range of units for each child element."""
        if first == last:
            return {}
        wordy = [index for index, each in enumerate(tag.inner) if each.has_words]
        if not tag.has_own_words and len(wordy) == 1 and tag.inner[wordy[0]].can_hold:
            return {wordy[0]: (first, last)}
        chosen = self._longest_stretches(tag, first, last) if wordy else {}
        if not tag.holds_text:
            _fill(tag, chosen, first, last)
        return chosen

    def _longest_stretches(self, tag: Tag, first: int, last: int) -> dict[int, tuple[int, int]]:
        starts = [each.number for each in tag.inner]
        best: dict[int, tuple[int, int]] = {}
        current, begin, end = -1, first, first  # The stretch being read; −1: of no element.
        for place in range(first, last):
            owner = self.units[place].owner
            if not tag.number <= owner <= tag.last_number:
                continue  # Linked to nothing here: a stretch may go on behind it.
            index = -1 if owner == tag.number else bisect.bisect_right(starts, owner) - 1
            if index != current:
                current, begin = index, place
            end = place + 1
            if index >= 0 and tag.inner[index].can_hold:
                was_begin, was_end = best.get(index, (0, 0))
                if end - begin > was_end - was_begin:
                    best[index] = begin, end
        return best


def _fill(tag: Tag, chosen: dict[int, tuple[int, int]], first: int, last: int) -> None:
    """Extend child elements so that no unit stays in a parent that may not contain text."""
    if not chosen:
        holders = [index for index, each in enumerate(tag.inner) if each.can_hold]
        lengths = [tag.inner[index].end - tag.inner[index].begin for index in holders]
        chosen[holders[lengths.index(max(lengths))]] = first, last
        return
    ordered = sorted(chosen, key=lambda index: chosen[index])
    begins = [first, *(chosen[index][0] for index in ordered[1:]), last]
    for index, begin, end in zip(ordered, begins, begins[1:], strict=False):
        chosen[index] = begin, end
