"""Element structure of markup: matching tags and sentence breaks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.serving.markup.markup_tokens import Token, read_attributes
from dragoman.serving.markup.tag_rules import TagRules
from dragoman.serving.service_types import ServiceError

MAX_DEPTH = 200
"""Elements inside of elements, beyond which a text is refused."""
MAX_ISLAND_DEPTH = 20
"""Islands inside of islands, beyond which it is refused too."""

_PREFORMATTED = ("pre", "textarea")
_NOTHING: frozenset[str] = frozenset()
_P = frozenset(("p",))
_CELLS = frozenset(("p", "td", "th"))
_ROWS = _CELLS | {"tr", "thead", "tbody", "tfoot", "caption", "colgroup"}
# HTML elements with optional end tags, and the start tags that close them.
_ENDED_BY = {
    "li": frozenset(("p", "li")),
    "dt": frozenset(("p", "dt", "dd")),
    "dd": frozenset(("p", "dt", "dd")),
    "td": _CELLS,
    "th": _CELLS,
    "tr": _CELLS | {"tr"},
    "tbody": _ROWS,
    "tfoot": _ROWS,
    "option": frozenset(("option",)),
    "optgroup": frozenset(("option", "optgroup")),
    "rt": frozenset(("rt", "rp")),
    "rp": frozenset(("rt", "rp")),
}


@dataclass(frozen=True, kw_only=True)
class Elements:
    """Element structure of a token list; each list has an entry for each token.

    Parameters
    ----------
    lasts : list[int]
        Of the token with which an element begins, the place of the one with which it ends; of all
        others, their own place.
    begins : dict[int, int]
        Of the tag with which an element ends, the place of the one with which it begins.
    is_closed : list[bool]
        Whether a tag has its partner; always true of what needs none.
    parents : list[int]
        Place of the tag of the element around; −1: none.
    is_preformatted : list[bool]
        Whether white space and line breaks count.
    """

    lasts: list[int]
    begins: dict[int, int]
    is_closed: list[bool]
    parents: list[int]
    is_preformatted: list[bool]


def match_elements(tokens: Sequence[Token], rules: TagRules) -> Elements:
    """Match start and end tags.

    Returns
    -------
    Elements
        How they belong together. Elements of HTML that are not closed end where browsers end them,
        more or less.

    Notes
    -----
    XML in which they do not belong together is refused, and so is what is too deep. The cost is
    linear in the number of tokens.
    """
    matcher = _Matcher(tokens, rules)
    for place in range(len(tokens)):
        matcher.read(place)
    return matcher.finish()


def count_breaks(tokens: Sequence[Token], elements: Elements, rules: TagRules) -> list[int]:
    """Count sentence breaks before each token.

    Returns
    -------
    list[int]
        How many of the tokens before each place are a break, and at the end how many of all. What
        is inside of an island, or of an inline element that stays as it is, does not count behind
        it, for a sentence goes on there.
    """
    with_text: set[int] = set()
    if rules.finds_outline:
        pairs = zip(tokens, elements.parents, strict=True)
        with_text = {
            parent for each, parent in pairs if each.kind == "text" and not each.raw.isspace()
        }
    is_break = [
        _is_break(token, elements.is_closed[place], elements.parents[place] in with_text, rules)
        for place, token in enumerate(tokens)
    ]
    counts = [0]
    from_pivot: list[tuple[int, int]] = []
    end_of_opaque = -1
    for place, token in enumerate(tokens):
        is_whole = token.kind == "start" and token.name in rules.subflows
        if place > end_of_opaque and is_opaque(token, rules):
            end_of_opaque = elements.lasts[place]
            is_whole = token.name in rules.inline
        elif place <= end_of_opaque:
            is_whole = False
        if is_whole and elements.is_closed[place]:
            from_pivot.append((elements.lasts[place], counts[-1] + is_break[place]))
        counts.append(counts[-1] + is_break[place])
        if from_pivot and from_pivot[-1][0] == place:
            counts[-1] = from_pivot.pop()[1]
    return counts


def is_opaque(token: Token, rules: TagRules) -> bool:
    """Return whether an element is kept untranslated with all its content."""
    if token.kind != "start":
        return False
    if token.name in rules.opaque:
        return True
    if rules.is_xml or "translate" not in token.raw.lower():
        return False
    attributes = read_attributes(token.raw)
    is_refused = attributes.get("translate", "").strip().lower() == "no"
    return is_refused or "notranslate" in attributes.get("class", "").lower().split()


def _is_break(token: Token, is_closed: bool, is_beside_text: bool, rules: TagRules) -> bool:
    """Whether a token breaks the sentence."""
    if token.kind in ("text", "other"):
        return False
    if token.kind == "declaration" or token.name in rules.breaks or not is_closed:
        return True
    if token.name in rules.inline:
        return False
    return rules.breaks_elsewhere or (rules.finds_outline and not is_beside_text)


class _Matcher:
    """Matches tags with a stack of open elements."""

    def __init__(self, tokens: Sequence[Token], rules: TagRules) -> None:
        self._tokens = tokens
        self._rules = rules
        self._open: list[int] = []
        self._num_open: Counter[str] = Counter()
        self._lasts = list(range(len(tokens)))
        self._begins: dict[int, int] = {}
        self._is_closed = [True] * len(tokens)
        self._parents: list[int] = []
        self._is_preformatted: list[bool] = []

    def read(self, place: int) -> None:
        """Read the next token."""
        token = self._tokens[place]
        if token.kind in ("start", "empty") and not self._rules.is_xml:
            ended = _P if token.name in self._rules.breaks else _NOTHING
            self._leave_all(_ENDED_BY.get(token.name, ended), place)
        if token.kind == "end":
            self._read_end(token, place)
        self._parents.append(self._open[-1] if self._open else -1)
        self._is_preformatted.append(any(self._num_open[each] for each in _PREFORMATTED))
        if token.kind == "start":
            self._open.append(place)
            self._num_open[token.name] += 1
            self._check_depth(len(self._open), MAX_DEPTH)
            if token.name in self._rules.subflows:
                num_islands = sum(self._num_open[name] for name in self._rules.subflows)
                self._check_depth(num_islands, MAX_ISLAND_DEPTH)

    def finish(self) -> Elements:
        """Close all open elements."""
        if self._open and self._rules.is_xml:
            raise self._mismatch("the text ends")
        while self._open:
            self._leave(len(self._tokens) - 1, False)
        return Elements(
            lasts=self._lasts,
            begins=self._begins,
            is_closed=self._is_closed,
            parents=self._parents,
            is_preformatted=self._is_preformatted,
        )

    def _read_end(self, token: Token, place: int) -> None:
        is_last = bool(self._open) and self._tokens[self._open[-1]].name == token.name
        if self._rules.is_xml and not is_last:
            raise self._mismatch(f"</{token.name[:80]}> stands")
        if not self._num_open[token.name]:
            self._is_closed[place] = False
            return
        while self._tokens[self._open[-1]].name != token.name:
            self._leave(place - 1, False)
        self._begins[place] = self._open[-1]
        self._leave(place, True)

    def _leave(self, last: int, is_closed: bool) -> None:
        begin = self._open.pop()
        self._num_open[self._tokens[begin].name] -= 1
        self._lasts[begin] = last
        self._is_closed[begin] = is_closed

    def _leave_all(self, names: frozenset[str], place: int) -> None:
        while self._open and self._tokens[self._open[-1]].name in names:
            self._leave(place - 1, False)

    def _check_depth(self, depth: int, limit: int) -> None:
        if depth > limit:
            raise ServiceError(
                "bad_request",
                f"Tag handling parsing failed: <{self._tokens[self._open[-1]].name[:80]}> is more "
                f"than {limit} elements deep; send parts of the text",
            )

    def _mismatch(self, found: str) -> ServiceError:
        name = self._tokens[self._open[-1]].name[:80] if self._open else ""
        where = f"<{name}> is open" if name else "no element is open"
        return ServiceError(
            "bad_request",
            f"Tag handling parsing failed: {found} where {where}; close every element in order",
        )
