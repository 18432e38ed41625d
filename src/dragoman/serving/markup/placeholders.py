"""Placeholders of messages: kept as inline tags, plural forms as sentences of their own."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dragoman.serving.markup.markup import ParsedMarkup, parse_tokens
from dragoman.serving.markup.markup_tokens import (
    Token,
    TokenKind,
    decode_xml,
    encode_text,
)
from dragoman.serving.markup.tag_rules import HTML, TagRules
from dragoman.serving.service_types import Span

PLURAL = "{}"
"""Name of the tokens around the forms of a plural; no element of XML is called so."""

# In this order: where two habits fit, the longer one is meant. Time is linear on hostile input.
_HABITS = (
    r"https?://[^\s<>\"']++|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++",
    r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}|\{%[^%\r\n]{0,200}+%\}",  # Mustache, Vue, Jinja
    r"\$t\((?:[^()]|\([^()]*+\))*+\)",  # i18next
    r"[$#%]?\{[^{}]*+\}",  # ICU, .NET, Python, Ruby, Fluent
    r"%\([^()\s]*+\)[-#0+]*+\d*+(?:\.\d++)?[a-zA-Z]|\$\([^()\s]*+\)|\$[a-zA-Z_]\w*+",
    r"%[a-zA-Z_]\w{2,}+%(?!\w)",  # Symfony
    r"%(?:\d++\$)?[-+#0]*+(?:\d++|\*)?(?:\.(?:\d++|\*))?(?:hh?|ll?|[qjztL])?"
    r"[@diouxXeEfFgGaAcCsSpn]",
    r"%L?\d{1,2}|%%",  # Qt
    r"@(?:\.\w++)?:(?:[\w.]++|\([\w.]++\))|(?<!\w)@[a-zA-Z]\w*+",  # Vue, Drupal
    r"(?<![\w:]):[a-z_]\w++(?![\w:])",  # Laravel
    r"__\w+?__|\[\[[^\[\]]*+\]\]|<<\w++>>",
    r"&\#?\w{1,30}+;|</?[a-zA-Z][^<>]*+>",  # what is escaped once more in XML
)
_HEAD = (
    r"\{\s*+[\w.$-]++\s*+,\s*+(?:plural|select|selectordinal)\s*+,"
    r"(?:\s*+offset:\s*+\d++)?\s*+(?:=\d++|\w++)\s*+\{"
)
_BREAK = r"(?<![ \t])[ \t]*+[\r\n][ \t\r\n]*+"
_OUTSIDE = f"(?P<head>{_HEAD})|(?P<line>{_BREAK})|(?P<kept>{'|'.join(_HABITS)})"
_INSIDE = r"(?P<next>\}\s*+(?:=\d++|\w++)\s*+\{)|(?P<end>\}\s*+\})|(?P<number>\#)"
_PATTERNS = (re.compile(_OUTSIDE), re.compile(f"{_INSIDE}|{_OUTSIDE}"))
_KINDS: dict[str, TokenKind] = {
    "head": "start",
    "next": "declaration",
    "end": "end",
    "line": "declaration",
    "kept": "other",
    "number": "other",
}
_TAG = re.compile(r"(?<!<)<(/?)([a-zA-Z\d][\w:.-]*+)(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+>")
_MESSAGE = replace(HTML, collapses_space=False)


@dataclass(frozen=True, kw_only=True)
class Message:
    """A string of a program, with its placeholders and tags.

    Parameters
    ----------
    marked : ParsedMarkup
        The string, escaped as HTML is.
    """

    marked: ParsedMarkup

    @property
    def segments(self) -> list[str]:
        """List the texts to translate."""
        return self.marked.segments

    def rebuild(self, translations: Sequence[tuple[str, Iterable[Span]]]) -> str:
        """Write the string with translations, and each placeholder once."""
        return _unescape(self.marked.rebuild(translations))


def parse_message(text: str) -> Message:
    """Parse a string of a program: tags, placeholders, plural forms and line breaks are kept.

    Nothing but tags is markup: “&” is “&”, and what it begins as in HTML is a placeholder.
    """
    tokens: list[Token] = []
    place = 0
    for match in _TAG.finditer(text):
        tokens.append(Token("text", encode_text(text[place : match.start()])))
        name = match.group(2).lower()
        is_empty = match.group().endswith("/>") or name in ("br", "hr", "img", "input", "wbr")
        kind: TokenKind = "end" if match.group(1) else "empty" if is_empty else "start"
        tokens.append(Token(kind, encode_text(match.group()), name))
        place = match.end()
    tokens.append(Token("text", encode_text(text[place:])))
    found = protect_placeholders([each for each in tokens if each.raw])
    return Message(marked=parse_tokens(found, with_plurals(_MESSAGE)))


def protect_placeholders(tokens: Sequence[Token]) -> list[Token]:
    """Split text tokens at placeholders, plural forms and line breaks.

    Notes
    -----
    The forms of a plural become an island in their sentence, each form a sentence of its own. Where
    its braces do not match, all the text of the tokens stays as it is.
    """
    splitter = _Splitter()
    found = [part for token in tokens for part in splitter.split(token)]
    if splitter.depth == 0:
        return found
    return [Token("other", each.raw) if each.kind == "text" else each for each in tokens]


def with_plurals(rules: TagRules) -> TagRules:
    """Extend rules for elements by plural forms."""
    return replace(
        rules,
        inline=rules.inline | {PLURAL},
        subflows=rules.subflows | {PLURAL},
        text_holders=rules.text_holders | {PLURAL} if rules.text_holders else rules.text_holders,
    )


class _Splitter:
    """Splits texts of a message, with the plurals that are open."""

    def __init__(self) -> None:
        self.depth = 0

    def split(self, token: Token) -> list[Token]:
        """Split one token; joined, the parts mean the same."""
        if token.kind != "text":
            return [token]
        text = decode_xml(token.raw)
        parts: list[Token] = []
        place = 0
        while match := _PATTERNS[self.depth > 0].search(text, place):
            group = match.lastgroup or ""
            self.depth += (group == "head") - (group == "end")
            name = PLURAL if group in ("head", "end") else ""
            parts.append(Token("text", encode_text(text[place : match.start()])))
            parts.append(Token(_KINDS[group], encode_text(match.group()), name))
            place = match.end()
        if not parts:
            return [token]
        parts.append(Token("text", encode_text(text[place:])))
        return [each for each in parts if each.raw]


def _unescape(text: str) -> str:
    """Undo the escaping of `encode_text`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
