"""Normalise text: one Unicode spelling for equal texts."""

import functools
import itertools
import sys
import unicodedata
from collections.abc import Iterator

# Joiners change how Indic, Persian and emoji text reads; the rest are visible signs that stand
# before or around numbers (“Prepended_Concatenation_Mark”), although Unicode calls them formats.
_KEPT_FORMATS = frozenset(
    "\u200c\u200d"
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)


def normalise(text: str) -> str:
    """Normalise a text as models are trained on it.

    White space of every kind (tabs, line ends and separators, no-break, thin and ideographic
    spaces) becomes a single space, none at the ends; control and invisible format characters are
    removed; the rest is composed to Unicode's form NFC.

    Notes
    -----
    Removed are the categories Cc, Cs and Cf: byte order mark, soft hyphen, zero-width space,
    direction marks, tag characters (so the flag of Scotland becomes a black flag). Kept from Cf
    are the joiners U+200C and U+200D and the visible signs such as U+06DD. Private and unassigned
    characters stay. Removal comes before composition, since a soft hyphen may stand between a
    letter and its accent. A typical line costs about a microsecond.
    """
    # Every white space but the plain one is unprintable, so most lines need no splitting.
    if text.isprintable():
        if "  " in text or text[:1] == " " or text[-1:] == " ":
            text = " ".join(text.split())
        return unicodedata.normalize("NFC", text)
    text = " ".join(text.split())
    if not text.isprintable():
        unwanted = {ord(character): None for character in set(text) if _is_removed(character)}
        if unwanted:
            text = " ".join(text.translate(unwanted).split())
    return unicodedata.normalize("NFC", text)


@functools.cache
def sentencepiece_rules() -> str:
    """Write the normalisation as a rule table for SentencePiece.

    Returns
    -------
    str
        Lines of hexadecimal code points “from, tab, to”: what SentencePiece takes, in a file, as
        `normalization_rule_tsv`.

    Notes
    -----
    A model trained with these rules normalises by itself wherever it is used. SentencePiece
    rewrites the longest match from left to right, so the rules agree with `normalise` as long as
    every letter with its marks is either composed already or any spelling of one composed
    character. Outside this range a table cannot follow: a sequence of marks for which there is
    no composed character, in an unusual order; a removed character between a letter and its
    mark; U+0000 and U+2581, which SentencePiece reserves. Decomposed Hangul is left out because its
    11,172 syllables would add 140 kB to a model that carries 32 kB of rules without them. None of
    this matters inside Dragoman, where `normalise` always goes first.
    """
    rules = {}
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        if character.isspace():
            rules[character] = " "
        elif _is_removed(character):
            rules[character] = ""
    del rules[" "]
    compositions = _characters_by_decomposition()
    for decomposed in compositions:
        composed = unicodedata.normalize("NFC", decomposed)
        for spelling in _spell(decomposed, compositions):
            if spelling != composed:
                rules.setdefault(spelling, composed)
    lines = (
        f"{_hexadecimal(source)}\t{_hexadecimal(target)}"
        for source, target in sorted(rules.items())
        if not 0xD800 <= ord(source[0]) <= 0xDFFF
    )
    return "\n".join(lines) + "\n"


def _is_removed(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Cf":
        return character not in _KEPT_FORMATS
    return category in ("Cc", "Cs") and not character.isspace()


def _characters_by_decomposition() -> dict[str, list[str]]:
    """Group characters by canonical decomposition, Hangul apart."""
    groups: dict[str, list[str]] = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        mapping = unicodedata.decomposition(character)
        if mapping and not mapping.startswith("<"):
            groups.setdefault(unicodedata.normalize("NFD", character), []).append(character)
    return groups


def _spell(decomposed: str, compositions: dict[str, list[str]]) -> set[str]:
    """Yield all canonically equivalent spellings: mark orders and partial compositions."""
    spellings: set[str] = set()
    for order in map("".join, itertools.permutations(decomposed)):
        if unicodedata.normalize("NFD", order) == decomposed:
            spellings.update(_compose_parts(order, compositions))
    return spellings


def _compose_parts(text: str, compositions: dict[str, list[str]]) -> Iterator[str]:
    if not text:
        yield ""
    for length in range(1, len(text) + 1):
        head = text[:length]
        choices = compositions.get(head, []) + ([head] if length == 1 else [])
        # Only heads that can be written are worth the recursion.
        if choices:
            for tail in _compose_parts(text[length:], compositions):
                yield from (choice + tail for choice in choices)


def _hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
