"""Split text into sentences by rules, and over-long sentences into parts."""

import itertools
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files

_END_MARKS = ".!?…‼⁇⁈⁉؟۔।॥։።"
_OPENING = "\"'“”„‟‘’‚‛«»‹›([{¿¡「『（《〈【〔"
_CLOSING = "\"'“”‘’«»‹›)]}」』）》〉】〕"
# “«” between spaces opens a quotation in French, and “ always opens one in Chinese.
_CLOSING_ALONE = _CLOSING.replace("«", "").replace("‹", "").replace("“", "")
_DASHES = "-‐–—―"
# What points to a note behind the end of a sentence: “bon.[1] Elle”, “bon.² Elle”, “bon.1 Elle”.
_REFERENCE = r"(?:(?:\[\w{1,4}\]){1,5}+|[¹²³⁰⁴-⁹]{1,3}+|(?<=[^\W\d_]{2}[.!?…])\d{1,3}+)"
_BEFORE_REFERENCES = re.escape(_END_MARKS + "。！？｡" + _CLOSING.replace("]", ""))
_REFERENCE_MARK = re.compile(rf"(?<=[{_BEFORE_REFERENCES}]){_REFERENCE}\Z")

# Chinese and Japanese marks need no space after them. A syllabic letter straight after a closing
# quotation mark carries the sentence on: 「はい。」と言った。
_EAST_ASIAN_END = re.compile(
    rf"(?<![。！？｡])[。！？｡](?:[。！？｡…]|[{re.escape(_CLOSING_ALONE)}])*+"
    rf"(?:\[\w{{1,4}}\]){{0,5}}+\s*+(?![。！？｡…{re.escape(_CLOSING_ALONE)}\s]|(?<=[」』）])[ぁ-ゟ])"
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_TOKEN = re.compile(r"\S+\s*")
_ABBREVIATED_LETTERS = re.compile(r"[^\W\d_](?:\.[^\W\d_]){1,5}")
_ORDINAL = re.compile(r"\d{1,2}|[IVXLC]{2,}")
_CLAUSE_END = re.compile(
    f"[;:,，；：、،؛][{re.escape(_CLOSING)}]*\\s+|[，；：、،؛]|(?<=\\s)[–—-]\\s+|[–—](?=\\w)"
)
_WORD_END = re.compile(r"\s+")
# What str.splitlines takes for the end of a line, and all white space after it.
_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"[^{_BREAKS}]*[{_BREAKS}]\s*|[^{_BREAKS}]+")
# A text without any of these is one sentence, which most texts are.
_POSSIBLE_END = re.compile(
    rf"[{re.escape(_END_MARKS)}][{re.escape(_CLOSING)}]*(?:{_REFERENCE})?\s+\S|[。！？｡]|\n[^\S\n]*\n"
)

_LONGEST_CHARACTER = 32
_LONGEST_REFERENCE = 40


def _read_words() -> dict[str, dict[str, frozenset[str]]]:
    """Read the words of each language."""
    text = (files(__package__) / "sentence_words.toml").read_text(encoding="utf-8")
    return {
        kind: {language: frozenset(words.split()) for language, words in of_kind.items()}
        for kind, of_kind in tomllib.loads(text).items()
    }


_WORDS = _read_words()
_BEFORE_NAMES = _WORDS["before_names"]
_BEFORE_NUMBERS = _WORDS["before_numbers"]
_AMBIGUOUS = _WORDS["ambiguous"]
_FIRST_WORDS = _WORDS["first_words"]

# “I” ends English sentences and “a”, “y” French ones; any other single letter is an initial.
_ONE_LETTER_WORDS = {"en": frozenset("I"), "fr": frozenset("ay")}


def split_sentences(text: str, language: str | None) -> list[str]:
    """Split a text into sentences by rules.

    Parameters
    ----------
    text : str
        Any text.
    language : str or None
        Code such as “en” or “de-AT”. Abbreviations are known for en, de, fr and es; for any other
        language, or None, those of all four are used.

    Returns
    -------
    list of str
        The sentences, each with the white space that follows it, so that joining them gives back
        the text; empty for an empty text.

    Notes
    -----
    A sentence ends at an end mark (and the quotation marks or brackets that close after it),
    a mark that points to a note, white space, and something that can begin a sentence: no small
    letter. A full stop after an
    abbreviation, an initial or a German ordinal does not count, or, where it may do both (“the
    U.S. …”), only if a usual first word follows. Chinese and Japanese marks end a sentence without
    white space. A blank line always does. Where the rules are in doubt, they do not split. The
    cost is linear in the length of the text.
    """
    if text and not _POSSIBLE_END.search(text):
        return [text]
    rules = _rules_of(language)
    ends = {match.end() for match in _EAST_ASIAN_END.finditer(text)}
    ends.update(match.end() for match in _BLANK_LINE.finditer(text))
    ends.update(_find_spaced_ends(text, rules, frozenset(ends)))
    return _cut_at(text, sorted(ends))


def split_text(
    text: str, language: str | None, *, by_line: bool = True, by_sentence: bool = True
) -> list[str]:
    """Split a text after its line breaks and after its sentences.

    Returns
    -------
    list of str
        The parts, each with the white space that follows it, so that joining them gives back the
        text; empty for an empty text.
    """
    lines = [text] if text else []
    if by_line and not text.isprintable():  # as is no end of a line
        lines = _cut_at(text, (match.end() for match in _LINE.finditer(text)))
    if not by_sentence:
        return lines
    return [sentence for line in lines for sentence in split_sentences(line, language)]


def cut_long(text: str, language: str | None, fits: Callable[[str], bool]) -> list[str]:
    """Split a text until each part fits, inside words if need be."""
    return [half for piece in split_long(text, language, fits) for half in _halve(piece, fits)]


def find_reference(text: str) -> int:
    """Find where a reference mark behind the end of a sentence begins, else the end of the text."""
    if text[-1:] != "]" and not text[-1:].isdigit():
        return len(text)
    mark = _REFERENCE_MARK.search(text, max(0, len(text) - _LONGEST_REFERENCE))
    return mark.start() if mark else len(text)


def share_of_several(texts: Iterable[str], language: str | None) -> float:
    """Compute the share of texts with more than one sentence."""
    counts = [len(split_sentences(text, language)) for text in texts]
    return sum(count > 1 for count in counts) / max(1, len(counts))


def list_abbreviations(language: str | None) -> frozenset[str]:
    """List the abbreviations whose full stop never ends a sentence."""
    return _select(_BEFORE_NAMES, _rules_of(language))


def split_long(text: str, language: str | None, fits: Callable[[str], bool]) -> list[str]:
    """Split a text only as far as needed for each part to fit.

    Returns
    -------
    list of str
        The whole text if it fits; otherwise its sentences, and those that do not fit cut after
        clauses, else between words, else between characters (with their combining marks), with
        as much in each piece as fits. Joining the pieces gives back the text; a piece that does
        not fit is a single character, and one of more than 32 code points is cut too.

    Notes
    -----
    Sentences are not packed together, since models are trained on single ones. `fits` is called
    about twice the logarithm of the number of parts for each piece.
    """
    if not text:
        return []
    if fits(text):
        return [text]
    pieces: list[str] = []
    for sentence in split_sentences(text, language):
        pieces.extend(_cut_to_fit(sentence, fits, _CUTTERS))
    return pieces


def _cut_to_fit(
    text: str, fits: Callable[[str], bool], cutters: tuple[Callable[[str], list[str]], ...]
) -> list[str]:
    if not cutters or fits(text):
        return [text]
    cut, *finer = cutters
    parts = cut(text)
    pieces: list[str] = []
    start = 0
    while start < len(parts):
        num_parts = _count_fitting(parts, start, fits)
        if num_parts == 0:
            pieces.extend(_cut_to_fit(parts[start], fits, tuple(finer)))
        else:
            pieces.append("".join(parts[start : start + num_parts]))
        start += max(num_parts, 1)
    return pieces


def _halve(piece: str, fits: Callable[[str], bool]) -> list[str]:
    """Halve a part until it fits, between code points if need be."""
    if len(piece) <= 1 or fits(piece):
        return [piece]
    middle = len(piece) // 2
    return [*_halve(piece[:middle], fits), *_halve(piece[middle:], fits)]


def _count_fitting(parts: list[str], start: int, fits: Callable[[str], bool]) -> int:
    """Count the parts from `start` that fit together, by galloping search."""
    count, step, growing = 0, 1, True
    while step:
        candidate = min(count + step, len(parts) - start)
        if candidate > count and fits("".join(parts[start : start + candidate])):
            count = candidate
            step = step * 2 if growing else step // 2
        else:
            growing = False
            step //= 2
    return count


def _find_spaced_ends(text: str, rules: str, known: frozenset[int]) -> Iterator[int]:
    """Find sentence ends that white space follows."""
    word = marks = previous = ""
    starts_sentence = True
    for token in _TOKEN.finditer(text):
        whole = token.group().rstrip()
        content = whole[: find_reference(whole)]
        core = content.rstrip(_CLOSING)
        # A token of closing marks alone, as in “Oui ! »”, belongs to the one before.
        if starts_sentence or content.strip(_CLOSING_ALONE):
            previous = word
            word = core.rstrip(_END_MARKS)
            marks = core[len(word) :]
        opens_sentence = starts_sentence
        starts_sentence = token.end() in known or "\n" in token.group()
        following = text[token.end() : token.end() + 60]
        if not marks or not _can_start(following):
            continue
        bare = word.lstrip(_OPENING)
        if whole[len(content) :].isdecimal() and bare.lower() in _select(_BEFORE_NUMBERS, rules):
            continue
        if marks != "." or _ends_at_full_stop(bare, previous, following, rules, opens_sentence):
            starts_sentence = True
            yield token.end()


def _can_start(following: str) -> bool:
    """Whether a sentence can start here: with a quotation, a number or no lower-case letter."""
    tokens = following.split(maxsplit=1)
    if not tokens or not tokens[0].strip(_CLOSING_ALONE):
        return False
    first = tokens[0].lstrip(_DASHES) or following.lstrip(_DASHES + " \u00a0")
    if first[:1] in _OPENING and first[:1] not in "([{":
        return True
    character = first.lstrip(_OPENING)[:1]
    return character.isdigit() or (character.isalpha() and not character.islower())


def _ends_at_full_stop(
    word: str, previous: str, following: str, rules: str, opens_sentence: bool
) -> bool:
    """Decide whether a full stop ends the sentence or marks an abbreviation."""
    small = word.rsplit("-", 1)[-1].lower()
    if small in _select(_BEFORE_NAMES, rules) or small in ("e.g", "i.e"):
        return False
    if small in _select(_BEFORE_NUMBERS, rules) and following[:1].isdigit():
        return False
    if word.isdigit() and opens_sentence:
        return False  # the number of an item in a list
    if len(word) == 1 and _has_case(word):
        return word in _select(_ONE_LETTER_WORDS, rules) and previous.islower()
    may_go_on = small in _select(_AMBIGUOUS, rules) or _ABBREVIATED_LETTERS.fullmatch(word)
    if may_go_on or (rules == "de" and _ORDINAL.fullmatch(word)):
        next_words = following.lstrip(_OPENING + _DASHES + " \u00a0").split(maxsplit=1)
        return bool(next_words) and _is_first_word(next_words[0], rules)
    return True


def _rules_of(language: str | None) -> str:
    return (language or "").replace("_", "-").split("-")[0].lower()


def _select(lists: dict[str, frozenset[str]], rules: str) -> frozenset[str]:
    if rules in lists:
        return lists[rules]
    return frozenset() if rules in _FIRST_WORDS else frozenset().union(*lists.values())


def _is_first_word(word: str, rules: str) -> bool:
    bare = word.strip(_OPENING + _CLOSING + _END_MARKS + ",;:").replace("’", "'")
    return bare in _select(_FIRST_WORDS, rules) or bare.startswith(("L'", "J'", "C'", "D'"))


def _has_case(letter: str) -> bool:
    return letter.lower() != letter.upper()


def _cut_at(text: str, ends: Iterable[int]) -> list[str]:
    """Split a text at some offsets, except inside a grapheme."""
    inner = [end for end in ends if 0 < end < len(text) and not _joins(text[end - 1], text[end])]
    places = [0, *inner, len(text)] if text else []
    return [text[start:end] for start, end in itertools.pairwise(places)]


def _cut_clauses(text: str) -> list[str]:
    return _cut_at(text, (match.end() for match in _CLAUSE_END.finditer(text)))


def _cut_words(text: str) -> list[str]:
    return _cut_at(text, (match.end() for match in _WORD_END.finditer(text)))


def _cut_characters(text: str) -> list[str]:
    return _cut_at(text, range(1, len(text)))


def _cut_overgrown(text: str) -> list[str]:
    """Split graphemes with implausibly many combining marks."""
    return [text] if len(text) <= _LONGEST_CHARACTER else list(text)


def _joins(before: str, character: str) -> bool:
    """Whether a code point continues the grapheme before it, approximately."""
    if unicodedata.category(character).startswith("M") or character in "\u200c\u200d":
        return True
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    is_hangul_tail = "\u1160" <= character <= "\u11ff"
    return before == "\u200d" or is_skin_tone or is_hangul_tail


_CUTTERS = (_cut_clauses, _cut_words, _cut_characters, _cut_overgrown)
