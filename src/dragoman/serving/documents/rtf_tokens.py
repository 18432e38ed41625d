"""Tokens of RTF: groups as elements, control words as tags, text in Unicode."""

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.serving.markup.markup_tokens import Token
from dragoman.serving.service_types import ServiceError

GROUP, SPAN, ISLAND = "group", "span", "island"
"""Names of tokens: a group; what stands between a control word and another that ends its effect;
and a group whose text is none of the sentence in which it stands."""

MOST_GROUPS = 150
"""Groups in groups, and spans in spans."""
MOST_ISLANDS = 15
"""Footnotes, shapes and the like in each other."""

_PIECE = re.compile(
    r"(?P<group>[{}])"
    r"|\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})?[ ]?"
    r"|\\'(?P<byte>[0-9a-fA-F]{2})"
    r"|\\(?P<symbol>[^a-zA-Z])"
    r"|(?P<line>[\r\n]+)"
    r"|(?P<text>[^\\{}\r\n]+)",
    re.DOTALL,
)
_SHOWN_SYMBOLS = {"~": "\u00a0", "-": "\u00ad", "_": "\u2011", "\\": "\\", "{": "{", "}": "}"}
_SHOWN_WORDS = {
    "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•",
    "endash": "–", "emdash": "—", "enspace": "\u2002", "emspace": "\u2003", "qmspace": "\u2005",
}  # fmt: skip


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BREAKS = _names(
    "par sect page column line softline softpage softcol cell row nestcell nestrow tab pard trowd "
    "sectd lbr"
)
# Destinations that are not marked as such, and yet not for readers.
_KEPT = _names(
    "fonttbl colortbl stylesheet info pict object listtext pntext sp shprslt nonshppict xe tc tcn "
    "rxe filetbl revtbl upr fldinst template private"
)
# Destinations marked by a star that have something for readers in them.
_READ = _names("annotation shpinst footnote")
_ISLANDS = _names(
    "footnote header headerl headerr headerf footer footerl footerr footerf annotation shp shptxt"
)
# Control words for the look of letters.
_LOOKS = _names(
    "b i ul uld uldash uldashd uldashdd uldb ulhwave ulth ulw ulwave strike striked1 f fs cf cb "
    "highlight super sub scaps caps outl shad impr embo expnd expndtw kerning charscalex v deleted "
    "dn up cs chcbpat lang"
)
_UNSEEN = (("v", ""), ("deleted", ""))
_CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437",
}  # fmt: skip
_PICTURES = 2
"""The character set of fonts whose letters are pictures."""
_OLD_SETS = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}

Looks = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class _State:
    """What holds up to the end of a group.

    `skip`: how many characters stand for one of Unicode where a program does not know it;
    `begin`: where the group begins in the text, and `index` among the tokens.
    """

    looks: Looks = frozenset()
    font: int = -1
    skip: int = 1
    name: str = GROUP
    is_kept: bool = False
    begin: int = 0
    index: int = 0


@dataclass(frozen=True, kw_only=True)
class _Fonts:
    """Encodings of fonts; None: of pictures. `usual` is that of the file."""

    usual: str
    default: int
    known: Mapping[int, str | None]

    def find(self, font: int) -> str | None:
        """Find the encoding of a font; −1: the one of the file."""
        return self.known.get(self.default if font < 0 else font, self.usual)


def split_rtf(text: str) -> list[Token]:
    """Tokenise RTF, given with one character for each byte; joined tokens are the input.

    Notes
    -----
    The cost is linear in the length. What nobody reads is one token, however large.
    """
    if not text.startswith("{\\rtf"):
        raise _bad_request("the file is no RTF: it does not begin with {\\rtf")
    reader = _Reader(text)
    place = 0
    while place < len(text) and not reader.is_over:
        match = _PIECE.match(text, place)
        if match is None:
            raise _bad_request("the file is damaged: it ends in a backslash")
        place = reader.read(match)
    return reader.finish(place)


class _Reader:
    """Reads tokens, with the state of each open group."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fonts = _read_fonts(text)
        self._states = [_State()]
        self._spans: list[list[tuple[int, Looks]]] = [[]]
        self._tokens: list[Token] = []
        self._controls = ""
        self._looks_before: Looks = frozenset()
        self._raw: list[str] = []
        self._shown: list[str] = []
        self._bytes = bytearray()
        self._num_to_skip = 0
        self._is_at_begin = self._is_starred = False
        self.is_over = False

    def read(self, match: re.Match[str]) -> int:
        """Read a piece, and return where the next begins."""
        raw, word = match.group(), match.group("word")
        if match.group("group"):
            self._flush()
            self._num_to_skip = 0
            self._open(match.start()) if raw == "{" else self._close(match.end())
        elif word:
            return self._read_word(word.lower() if word.isupper() else word, match)
        elif match.group("byte"):
            self._add_bytes(raw, bytes.fromhex(match.group("byte")))
        elif match.group("symbol"):
            self._read_symbol(raw, match.group("symbol"))
        elif match.group("line"):
            self._read_line(raw)
        else:
            self._read_text(raw)
        return match.end()

    def finish(self, place: int) -> list[Token]:
        """Finish at the end of the outermost group; what stands behind it stays."""
        if not self.is_over:
            raise _bad_request("the file is damaged: it ends inside of a group")
        rest = [Token("other", self._text[place:])] if place < len(self._text) else []
        return [*_join_halves(self._tokens), *rest]

    def _open(self, begin: int) -> None:
        if len(self._states) > MOST_GROUPS:
            raise _bad_request(f"the file has more than {MOST_GROUPS} groups in each other")
        self._states.append(
            replace(self._states[-1], name=GROUP, begin=begin, index=len(self._tokens))
        )
        self._spans.append([])
        self._tokens.append(Token("start", "{", GROUP))
        self._is_at_begin, self._is_starred = True, False

    def _close(self, end: int) -> None:
        if len(self._states) < 2:
            raise _bad_request("the file is damaged: it closes a group that is not open")
        state = self._states.pop()
        self._spans.pop()
        if state.is_kept and not self._states[-1].is_kept:
            self._tokens[state.index :] = [Token("other", self._text[state.begin : end])]
        elif state.is_kept:
            del self._tokens[state.index :]  # Its text is in the token of the group around.
        else:
            self._tokens.append(Token("end", "}", state.name))
        self._is_at_begin = False
        self.is_over = len(self._states) == 1

    def _read_word(self, word: str, match: re.Match[str]) -> int:
        """Read a control word."""
        raw, number = match.group(), match.group("number") or ""
        if self._is_at_begin:
            self._name_group(word)
        if word == "u" and number:
            self._read_unicode(raw, int(number))
        elif word in _SHOWN_WORDS:
            self._add_shown(raw, _SHOWN_WORDS[word])
        elif word in _BREAKS:
            self._flush()
            self._spans[-1].clear()
            self._tokens.append(Token("declaration", raw))
        elif word == "bin":
            self._flush()
            end = match.end() + max(int(number or 0), 0)
            self._tokens.append(Token("other", self._text[match.start() : end]))
            return min(end, len(self._text))
        else:
            self._flush_text()
            self._looks_before = self._looks_before if self._controls else self._states[-1].looks
            self._controls += raw
            self._change_state(word, number)
        return match.end()

    def _name_group(self, word: str) -> None:
        """Tell by its first word what a group is."""
        self._is_at_begin = False
        state = self._states[-1]
        if word in _KEPT or (self._is_starred and word not in _READ):
            self._states[-1] = replace(state, is_kept=True)
        elif word in _ISLANDS:
            if sum(each.name == ISLAND for each in self._states) >= MOST_ISLANDS:
                raise _bad_request(f"the file has more than {MOST_ISLANDS} notes in each other")
            self._tokens[state.index] = Token("start", "{", ISLAND)
            self._states[-1] = replace(state, name=ISLAND, looks=frozenset())

    def _change_state(self, word: str, number: str) -> None:
        """Change what holds up to the end of the group."""
        state = self._states[-1]
        looks = {name: value for name, value in state.looks if word != "plain"}
        if word == "uc":
            self._states[-1] = replace(state, skip=max(int(number or 1), 0))
            return
        if word == "plain":
            state = replace(state, font=-1)
        elif word == "f":
            state = replace(state, font=int(number or 0))
            number = "0" if int(number or 0) == self._fonts.default else number
        if word in ("ulnone", "nosupersub"):
            gone = ("ul",) if word == "ulnone" else ("super", "sub")
            looks = {name: value for name, value in looks.items() if not name.startswith(gone)}
        elif word in _LOOKS and number == "0":
            looks.pop(word, None)
        elif word in _LOOKS:
            looks[word] = number
        self._states[-1] = replace(state, looks=frozenset(looks.items()))

    def _read_symbol(self, raw: str, symbol: str) -> None:
        if symbol == "*" and self._is_at_begin:
            self._is_starred = True
            self._controls += raw
        elif symbol in _SHOWN_SYMBOLS:
            self._add_shown(raw, _SHOWN_SYMBOLS[symbol])
        elif symbol in "\r\n":  # The same as \par.
            self._flush()
            self._tokens.append(Token("declaration", raw))
        else:
            self._flush()
            self._tokens.append(Token("other", raw))

    def _read_line(self, raw: str) -> None:
        """Read a line break, which means nothing, but that a control word is over."""
        if self._raw:
            self._raw.append(raw)
        elif self._controls:
            self._controls += raw
        else:
            self._tokens.append(Token("other", raw))

    def _read_text(self, raw: str) -> None:
        num_skipped = min(self._num_to_skip, len(raw))
        self._num_to_skip -= num_skipped
        self._begin_text(raw)
        # What is no byte cannot be in a file: the caller has made each byte a character.
        self._bytes += raw[num_skipped:].encode("latin-1")

    def _read_unicode(self, raw: str, number: int) -> None:
        code = number & 0xFFFF
        self._num_to_skip = 0
        self._add_shown(raw, chr(code))
        self._num_to_skip = self._states[-1].skip

    def _add_bytes(self, raw: str, content: bytes) -> None:
        self._begin_text(raw)
        if self._num_to_skip:
            self._num_to_skip -= 1
        else:
            self._bytes += content

    def _add_shown(self, raw: str, shown: str) -> None:
        self._begin_text(raw)
        if self._num_to_skip:
            self._num_to_skip -= 1
            return
        self._decode()
        self._shown.append(shown)

    def _begin_text(self, raw: str) -> None:
        self._is_at_begin = False
        self._flush_controls()
        self._raw.append(raw)

    def _decode(self) -> None:
        """Decode the bytes that were read."""
        encoding = self._fonts.find(self._states[-1].font) or "latin-1"
        self._shown.append(self._bytes.decode(encoding, "replace"))
        self._bytes.clear()

    def _flush(self) -> None:
        self._flush_text()
        self._flush_controls()

    def _flush_text(self) -> None:
        """Make a token of the text that was read."""
        if not self._raw:
            return
        self._decode()
        state, raw = self._states[-1], "".join(self._raw)
        is_seen = not any(each in state.looks for each in _UNSEEN)
        if is_seen and self._fonts.find(state.font) is not None:
            self._tokens.append(Token("text", raw, shown="".join(self._shown)))
        else:
            self._tokens.append(Token("other", raw))
        self._raw, self._shown, self._num_to_skip = [], [], 0

    def _flush_controls(self) -> None:
        """Make a token of control words, and a span if they end the effect of others."""
        if not self._controls:
            return
        raw, self._controls = self._controls, ""
        spans, before, now = self._spans[-1], self._looks_before, self._states[-1].looks
        if spans and now != before and spans[-1][1] == now:
            index, _ = spans.pop()
            self._tokens[index] = self._tokens[index]._replace(kind="start", name=SPAN)
            self._tokens.append(Token("end", raw, SPAN))
            return
        if now != before and sum(map(len, self._spans)) + len(self._states) < MOST_GROUPS:
            spans.append((len(self._tokens), before))
        self._tokens.append(Token("other", raw))


def _join_halves(tokens: Sequence[Token]) -> list[Token]:
    """Join halves of characters beyond the first plane, between which control words may stand."""
    joined: list[Token] = []
    waiting = -1  # Place of a text that ends with the first half.
    for token in tokens:
        shown = token.shown or ""
        if waiting >= 0 and shown[:1] and "\udc00" <= shown[0] <= "\udfff":
            first = joined[waiting]
            joined[waiting] = first._replace(shown=f"{first.shown}{shown[0]}")
            shown = shown[1:]
        waiting = waiting if token.shown is None else -1
        if shown and "\ud800" <= shown[-1] <= "\udbff":
            waiting = len(joined)
        joined.append(token if token.shown is None else token._replace(shown=shown))
    return [
        each if each.shown is None else each._replace(shown=_join_pairs(each.shown))
        for each in joined
    ]


def _join_pairs(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_fonts(text: str) -> _Fonts:
    """Read the encodings of fonts, and of the file."""
    head = text[: text.find("{", 1) % (len(text) + 1)]
    usual = next((name for word, name in _OLD_SETS.items() if f"\\{word}\\" in head), "cp1252")
    said = re.search(r"\\ansicpg(\d{1,5})", head)
    usual = (_find_encoding(said.group(1)) if said else None) or usual
    default = re.search(r"\\deff(\d{1,9})", head)
    known: dict[int, str | None] = {}
    font = -1
    begin = text.find("{\\fonttbl")
    depth = 0
    for match in _PIECE.finditer(text, begin) if begin >= 0 else ():
        word, number = match.group("word"), match.group("number") or ""
        depth += (match.group() == "{") - (match.group() == "}")
        if depth == 0:
            break
        if word == "f" and number:
            font = int(number)
        elif word == "fcharset" and number and font >= 0:
            known[font] = _CHARSETS.get(int(number), usual) if int(number) != _PICTURES else None
        elif word == "cpg" and number and font >= 0:
            known[font] = _find_encoding(number) or usual
    return _Fonts(usual=usual, default=int(default.group(1)) if default else 0, known=known)


def _find_encoding(page: str) -> str | None:
    """Find the encoding of a code page; None: nobody knows it."""
    named = {"65001": "utf-8", "10000": "mac_roman", "936": "gbk"}.get(page, f"cp{page}")
    try:
        return codecs.lookup(named).name
    except LookupError:
        return None


def _bad_request(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {reason}")
