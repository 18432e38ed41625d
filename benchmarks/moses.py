"""Tokenised, lowercased text, as the published scores of Multi30k were computed on.

The rules are those of the Moses scripts that made the data set's “lc.norm.tok” files: lowercase,
then normalise punctuation, then tokenise. Special characters are not escaped, which changes no
score. German and French have their own rules for apostrophes and abbreviations.
"""

import logging
import re

from dragoman.evaluation.bleu import Score, score_translations

_QUOTES = re.compile("[„“”«»]|''|´´")
_APOSTROPHES = re.compile("[‘’‚´`]")
_SPACED = ((" %", "%"), (" :", ":"), (" ;", ";"), (" ?", "?"), (" !", "!"))

_HELD_DOT = "\ue000"

# Words after which a period ends no sentence, in lower case, as the text is.
_ABBREVIATIONS = {
    "de": {"bzw", "bsp", "ca", "etc", "evtl", "ggf", "inkl", "usw", "vgl"}
    | {str(number) for number in range(1, 100)},
    "fr": {"etc", "env", "av", "apr", "vol", "pp"},
}


def tokenise(line: str, language: str = "de") -> str:
    """Lowercase, normalise and tokenise a line.

    Parameters
    ----------
    line : str
        Raw text.
    language : str
        Its language: “de”, “fr” or “en”.

    Returns
    -------
    str
        Tokens with a space between.
    """
    text = f" {_normalise(line.lower())} "
    text = re.sub(r"[\x00-\x1f]", "", text)
    text = re.sub(r"([^\w\s.'`,-]|_)", r" \1 ", text)
    text = re.sub(r"\.{2,}", lambda dots: f" {_HELD_DOT * len(dots[0])} ", text)
    text = re.sub(r"([^\d]),", r"\1 , ", text)
    text = re.sub(r",([^\d])", r" , \1", text)
    text = _split_apostrophes(text, language)
    words = text.split()
    parts = [_split_period(words, place, language) for place in range(len(words))]
    text = " ".join(parts).replace(_HELD_DOT, ".")
    return re.sub(r"\.' ?$", " . '", text).strip()


def score_as_published(translations: list[str], references: list[str], language: str) -> Score:
    """Compute BLEU as the published scores of Multi30k were.

    Parameters
    ----------
    translations : list[str]
        Raw text.
    references : list[str]
        Raw text.
    language : str
        Of both.

    Returns
    -------
    Score
        BLEU on tokenised, lowercased text, with no tokeniser of sacreBLEU's own.
    """
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it warns of tokenised text
    tokens = [[tokenise(line, language) for line in each] for each in (translations, references)]
    (score,) = score_translations(
        tokens[0], [tokens[1]], metrics=("bleu",), tokenize="none", num_samples=0
    )
    return score


def _normalise(text: str) -> str:
    """Write punctuation in one way."""
    text = text.replace("\u00a0", " ").replace("–", "-").replace("—", " - ").replace("…", "...")
    text = _QUOTES.sub('"', text)
    text = _APOSTROPHES.sub("'", text)
    text = re.sub(r"\( ", "(", re.sub(r" \)", ")", text))
    for spaced, joined in _SPACED:
        text = text.replace(spaced, joined)
    text = text.replace(',"', '",')
    text = re.sub(r'(\.+)"(\s*[^<])', r'"\1\2', text)
    return re.sub(r" +", " ", text).strip()


def _split_apostrophes(text: str, language: str) -> str:
    """Cut at apostrophes: before one in English, after one in French, on both sides otherwise."""
    if language not in ("en", "fr"):
        return text.replace("'", " ' ")
    letter = r"[^\W\d_]"
    text = re.sub(r"([^\W\d_]|^)?'(?!\w)", r"\1 ' ", text)
    text = re.sub(rf"(?<!{letter})'", " ' ", text)
    if language == "fr":
        return re.sub(rf"({letter})'({letter})", r"\1' \2", text)
    return re.sub(rf"({letter})'({letter})", r"\1 '\2", text)


def _split_period(words: list[str], place: int, language: str) -> str:
    """Cut a period off a word, unless it belongs to it."""
    word = words[place]
    if not (word.endswith(".") and len(word) > 1):
        return word
    before = word[:-1]
    following = words[place + 1] if place + 1 < len(words) else ""
    is_abbreviation = "." in before and any(map(str.isalpha, before))
    is_known = before in _ABBREVIATIONS.get(language, ())
    goes_on = following[:1].islower()
    return word if is_abbreviation or is_known or goes_on else f"{before} ."
