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
_JOINED = re.compile(rf"(\\[a-zA-Z]+-?\d*){_SEAM}(?=[a-zA-Z0-9 -])")
_UNSAFE = re.compile(r"[\\{}\x00-\x1f\x7f\u00a0\u00ad\u2011]|[^\x00-\x7f\u00a0\u00ad\u2011]+")
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
    is_usual = not re.search(r"\\uc(?!1\b)\d", text)
    document = _make_document(tokens, is_usual=is_usual)

    def into(source: str, target: str) -> Document:
        marked = [_mark_language(each, source, target) for each in tokens]
        return _make_document(marked, is_usual=is_usual)

    return replace(document, into=into)


def _make_document(tokens: Sequence[Token], *, is_usual: bool) -> Document:
    """Make a document of tokens; `is_usual`: one character stands for one of Unicode everywhere."""

    def encode(translation: str) -> str:
        escaped = _UNSAFE.sub(lambda found: _escape(found.group(), is_usual=is_usual), translation)
        return f"{_SEAM}{escaped}" if escaped else ""

    rules = TagRules(
        is_xml=True,
        inline=frozenset((GROUP, SPAN, ISLAND)),
        subflows=frozenset((ISLAND,)),
        raised=re.compile(r"\\super(?![a-z0-9])"),
        encode=encode,
    )
    marked = parse_tokens(tokens, rules)

    def write(translations: Sequence[Translated]) -> bytes:
        written = _JOINED.sub(r"\1 ", marked.rebuild(translations))
        return written.replace(_SEAM, "").encode("latin-1")

    return Document(texts=marked.segments, write=write)


def _escape(characters: str, *, is_usual: bool) -> str:
    """Write a control character, or one that has a meaning, or any beyond ASCII, in ASCII."""
    if characters in _ESCAPED:
        return _ESCAPED[characters]
    if characters.isascii():
        return ""
    pairs = characters.encode("utf-16-le", "replace")
    codes = [int.from_bytes(pairs[at : at + 2], "little") for at in range(0, len(pairs), 2)]
    escapes = "".join(f"\\u{code - 0x10000 if code > 0x7FFF else code}?" for code in codes)
    return escapes if is_usual else f"{{\\uc1{escapes}}}"


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
