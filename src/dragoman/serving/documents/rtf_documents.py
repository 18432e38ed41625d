"""RTF: text translated, everything else kept byte by byte."""

import locale
import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.serving.documents.rtf_tokens import GROUP, ISLAND, SPAN, split_rtf
from dragoman.serving.documents.text_documents import (
    MOST_MARKUP,
    Document,
    Translated,
    check_length,
)
from dragoman.serving.markup.markup import parse_tokens
from dragoman.serving.markup.markup_tokens import Token
from dragoman.serving.markup.tag_rules import TagRules

_SEAM = "\ue000"
"""Where a translation begins, which must not become part of the control word before it."""
_MARK = "\ue001"
"""Before the number of a character beyond ASCII, up to a semicolon."""
_JOINED = re.compile(rf"(\\[a-zA-Z]+-?\d*){_SEAM}(?=[a-zA-Z0-9 -])")
_UNSAFE = re.compile(r"[\\{}\x00-\x1f\x7f-\U0010ffff]")
_STEP = re.compile(
    rf"[{{}}]|\\uc(?P<skip>\d{{1,2}})|\\bin(?P<size>\d{{1,9}}) ?|\\[^a-z]"
    rf"|{_MARK}(?P<code>-?\d+);"
)
_LANGUAGE = re.compile(r"(\\(?:def)?lang(?:np|fe|fenp)?)(\d+)")
_ESCAPED = {
    "\\": "\\\\", "{": "\\{", "}": "\\}", "\t": "\\tab ", "\n": " ", "\r": " ",
    "\u00a0": "\\~", "\u00ad": "\\-", "\u2011": "\\_",
}  # fmt: skip


def read_rtf(content: bytes) -> Document:
    """Parse RTF.

    Notes
    -----
    Translations are written in ASCII, with escapes for Unicode, which every encoding of the file
    allows.
    """
    text = content.decode("latin-1")  # A character for each byte.
    tokens = split_rtf(text)
    check_length(sum(len(each.raw) for each in tokens if each.kind != "other"), MOST_MARKUP)
    document = _make_document(tokens)

    def into(source: str, target: str) -> Document:
        marked = [_mark_language(each, source, target) for each in tokens]
        return _make_document(marked)

    return replace(document, into=into)


def _make_document(tokens: Sequence[Token]) -> Document:
    """Make a document of tokens."""
    rules = TagRules(
        is_xml=True,
        inline=frozenset((GROUP, SPAN, ISLAND)),
        subflows=frozenset((ISLAND,)),
        raised=re.compile(r"\\super(?![a-z0-9])"),
        encode=_encode,
    )
    marked = parse_tokens(tokens, rules)

    def write(translations: Sequence[Translated]) -> bytes:
        written = _JOINED.sub(r"\1 ", marked.rebuild(translations)).replace(_SEAM, "")
        return _write_codes(written).encode("latin-1")

    return Document(texts=marked.segments, write=write)


def _encode(translation: str) -> str:
    """Write a translation in ASCII, with marks for what is beyond it."""
    escaped = _UNSAFE.sub(lambda found: _escape(found.group()), translation)
    return f"{_SEAM}{escaped}" if escaped else ""


def _escape(character: str) -> str:
    """Escape a control character, one that has a meaning, or one beyond ASCII."""
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isascii():
        return ""
    pairs = character.encode("utf-16-le", "replace")
    codes = [int.from_bytes(pairs[at : at + 2], "little") for at in range(0, len(pairs), 2)]
    return "".join(f"{_MARK}{code - 0x10000 if code > 0x7FFF else code};" for code in codes)


def _write_codes(text: str) -> str:
    """Write marks as codes, behind each as many characters as are skipped there.

    A control word says how many these are, up to the end of its group.
    """
    written: list[str] = []
    skips = [1]
    place = 0
    while match := _STEP.search(text, place):
        written.append(text[place : match.start()])
        place = match.end()
        step = match.group()
        if step == "{":
            skips.append(skips[-1])
        elif step == "}" and len(skips) > 1:
            skips.pop()
        elif match.group("skip"):
            skips[-1] = int(match.group("skip"))
        elif match.group("size"):
            place += int(match.group("size"))
            step = text[match.start() : place]
        elif match.group("code"):
            step = f"\\u{match.group('code')}{'?' * skips[-1] or ' '}"
        written.append(step)
    return "".join([*written, text[place:]])


def _mark_language(token: Token, source: str, target: str) -> Token:
    """Change the languages that control words name, which Windows numbers."""
    if token.kind == "text" or "lang" not in token.raw or token.raw.startswith("{"):
        return token

    def change(match: re.Match[str]) -> str:
        named = locale.windows_locale.get(int(match.group(2)), "")
        numbers = [
            number
            for number, name in locale.windows_locale.items()
            if name.split("_")[0] == target.split("-")[0]
        ]
        is_source = bool(numbers) and named.split("_")[0] == source.split("-")[0]
        return f"{match.group(1)}{min(numbers) if is_source else match.group(2)}"

    return token._replace(raw=_LANGUAGE.sub(change, token.raw))
