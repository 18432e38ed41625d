"""Find names and addresses of a source that its translation lacks or has changed."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from dragoman.decoding.output.doubt import Doubt

WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)[^\s<>“”\"»«]*[\w/=&#-]", re.IGNORECASE
)
_SAME_BEGINNING = 3
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_SENTENCE_END = re.compile(r"[.!?:…„“”\"«»(\[]\s*$")
# English writes these with a capital, most other languages do not.
_NO_NAMES = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
    "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december", "english", "french", "german", "spanish", "italian", "dutch",
    "russian", "chinese", "japanese", "polish", "portuguese", "european", "american",
    "british", "mr", "mrs", "miss", "sir", "god", "internet", "ok", "tv",
})  # fmt: skip
# Languages that write every noun with a capital: there a capital says nothing of names.
_CAPITAL_NOUNS = ("de", "lb")
# Behind these and an initial a word with a capital is a name that is not translated.
_TITLES = frozenset({
    "mr", "mrs", "ms", "dr", "prof", "herr", "herrn", "frau", "familie", "professor",
    "doktor", "madame", "monsieur", "mme", "señor", "señora", "signor", "signora",
})  # fmt: skip
# Given names that many languages share; a surname follows.
_GIVEN = frozenset({
    "alexander", "andrea", "andreas", "angela", "anja", "anna", "anne", "antonio", "barbara",
    "bernd", "birgit", "carlos", "christian", "christina", "claudia", "daniel", "david",
    "elena", "emma", "erik", "eva", "felix", "florian", "frank", "gabriele", "giovanni",
    "hans", "heike", "helmut", "jan", "jana", "jean", "jens", "johann", "johannes", "john",
    "jonas", "jörg", "josé", "julia", "juan", "jürgen", "karin", "karl", "katharina", "klaus",
    "lars", "laura", "lena", "leon", "luca", "lukas", "manfred", "maria", "marie", "mario",
    "markus", "martin", "matthias", "max", "mehmet", "michael", "monika", "mustafa", "nicole",
    "nina", "olaf", "oliver", "paul", "peter", "petra", "pierre", "rainer", "ralf", "robert",
    "sabine", "sandra", "sarah", "sophie", "stefan", "stephan", "susanne", "sven", "thomas",
    "thorsten", "tim", "tobias", "tom", "ulrich", "ursula", "uwe", "werner", "wolfgang",
})  # fmt: skip
# German writes what politely means “you” with a capital, English what means “I”.
_PRONOUNS = re.compile(r"sie|ihr(?:e[mnrs]?)?|ihnen|i[’'](?:m|ll|d|ve)", re.IGNORECASE)
_INITIAL = re.compile(r"(?<!\w)[^\W\d_]\.\s*\Z")
_OWN_LETTERS = {
    "de": "äöüß", "en": "", "fr": "àâæçéèêëîïôœùûüÿ", "es": "áéíñóúü", "it": "àèéìíîòóùú",
}  # fmt: skip
# Names with a middle that other languages leave out.
_SHORTENED = frozenset({"lisbon"})
_LEAST_DROPPED, _LEAST_KEPT = 2, 2


def compare_addresses(source: str, translation: str) -> Iterator[Doubt]:
    """Find addresses of the source that are not the same in the translation."""
    theirs = {each.group().casefold() for each in ADDRESS.finditer(translation)}
    for match in ADDRESS.finditer(source):
        if match.group().casefold() not in theirs:
            words = f"the address {match.group()} is not in the translation"
            yield Doubt(
                kind="address", side="source", begin=match.start(), end=match.end(), words=words
            )


def compare_names(
    source: str, translation: str, source_language: str, target_language: str
) -> Iterator[Doubt]:
    """Find names of the source that the translation does not seem to have.

    Notes
    -----
    A name that surely is one (behind a title, an initial or a given name, or with letters that the
    language has not) must stand in the translation, but for an ending. Another word with a capital
    inside a sentence, where the language does not write all nouns so, must have a word that begins
    likewise, unless the translation has as many names of its own.
    """
    if not any(each.isalpha() and each in _LATIN for each in fold(translation)):
        return
    words = [fold(each.group()) for each in WORD.finditer(translation)]
    sure = list(_find_sure(source, source_language))
    lost = [each for each in sure if not any(_is_near(fold(each.group()), one) for one in words)]
    has_nouns = [
        each.split("-")[0] in _CAPITAL_NOUNS for each in (source_language, target_language)
    ]
    places = {each.start() for each in sure}
    if not has_nouns[0]:
        lost += [
            each for each in _find_unsure(source, translation, has_nouns[1])
            if each.start() not in places
        ]  # fmt: skip
    for match in sorted(lost, key=lambda each: each.start()):
        yield Doubt(
            kind="name", side="source", begin=match.start(), end=match.end(),
            words=f"the name {match.group()} does not seem to be in the translation",
        )  # fmt: skip
    if not has_nouns[1]:
        yield from _find_shortened(source, translation, [fold(each.group()) for each in lost])


def _find_sure(text: str, language: str) -> Iterator[re.Match[str]]:
    """Find words that are surely names."""
    if _is_in_capitals(text):
        return
    matches = list(WORD.finditer(text))
    for place, match in enumerate(matches):
        word = match.group()
        if not word[0].isupper() or len(word) < _SAME_BEGINNING or _is_no_name(word):
            continue
        before = text[: match.start()]
        last = matches[place - 1] if place else None
        gap = text[last.end() : match.start()] if last else ""
        following = matches[place + 1] if place + 1 < len(matches) else None
        is_given = word.casefold() in _GIVEN and following is not None and (
            following.group()[0].isupper() and text[match.end() : following.start()] == " "
        )  # fmt: skip
        is_behind = last is not None and last.group()[0].isupper() and (
            (gap.strip(".") == " " and fold(last.group()) in _TITLES)
            or (gap == " " and last.group().casefold() in _GIVEN)
        )  # fmt: skip
        is_foreign = _has_foreign_letters(word, language)
        if is_given or is_behind or is_foreign or _is_behind_initial(before):
            yield match


def _is_no_name(word: str) -> bool:
    is_known = fold(word) in _TITLES or word.casefold() in _NO_NAMES
    return is_known or _PRONOUNS.fullmatch(word) is not None


def _is_behind_initial(before: str) -> bool:
    """Whether an initial stands before a word, that is none of “z. B.” or “S. 5”."""
    initial = _INITIAL.search(before)
    if initial is None or not initial.group()[0].isupper():
        return False
    # “Type B. Here” ends a sentence, as “z. B. Hunde” ends an abbreviation.
    rest = before[: initial.start()].rstrip()
    last = rest.split()[-1] if rest else "A"
    return not rest or (last[0].isupper() and last.casefold() in _GIVEN)


def _has_foreign_letters(word: str, language: str) -> bool:
    """Whether a word has letters with marks that its language has not."""
    own = _OWN_LETTERS.get(language.split("-")[0])
    if own is None:
        return False
    letters = unicodedata.normalize("NFC", word).casefold()
    return any(each.isalpha() and each not in own and fold(each) != each for each in letters)


def _is_near(name: str, word: str) -> bool:
    """Whether a word is a name, but for an ending or a letter."""
    if word == name or word in (f"{name}s", f"{name}’s", f"{name}'s"):
        return True
    if any(name in part.split("’") for part in re.split(r"[-']", word)):
        return True
    shorter, longer = sorted((name, word), key=len)
    # “Merkel” and “Merkelem”, but not “Merkel” and “Merk”.
    most = 3 if longer == word else 1
    if len(shorter) >= 4 and len(longer) - len(shorter) <= most and longer.startswith(shorter):
        return True
    return len(name) > 4 and abs(len(name) - len(word)) <= 1 and _differ_by_one(shorter, longer)


def _differ_by_one(shorter: str, longer: str) -> bool:
    """Whether one letter is another, or is there once more."""
    same = 0
    while same < len(shorter) and shorter[same] == longer[same]:
        same += 1
    rest = shorter[same:] if len(shorter) < len(longer) else shorter[same + 1 :]
    return longer[same + 1 :] == rest


def _find_unsure(source: str, translation: str, has_nouns: bool) -> list[re.Match[str]]:
    """Find words that may be names, where the translation has fewer of its own."""
    names = [each for each in find_names(source) if not _is_no_name(each.group())]
    beginnings = {fold(each.group())[:_SAME_BEGINNING] for each in WORD.finditer(translation)}
    missing = [each for each in names if fold(each.group())[:_SAME_BEGINNING] not in beginnings]
    if not missing:
        return []
    # “Germany” may be “Allemagne”: a name of the translation that the source has not.
    origins = {fold(each.group())[:_SAME_BEGINNING] for each in WORD.finditer(source)}
    found = [] if has_nouns else find_names(translation)
    others = [each for each in found if fold(each.group())[:_SAME_BEGINNING] not in origins]
    return missing[len(others) :]


def _find_shortened(source: str, translation: str, told: Sequence[str]) -> Iterator[Doubt]:
    """Find names of the translation from whose middle letters of the source's are gone."""
    origins = {fold(each.group()): each.group() for each in WORD.finditer(source)
               if each.group()[0].isupper()}  # fmt: skip
    if _is_in_capitals(source):
        return
    for match in WORD.finditer(translation):
        word = fold(match.group())
        if not match.group()[0].isupper() or word in origins or word in _SHORTENED:
            continue
        for name, written in origins.items():
            if name not in told and _lacks_middle(word, name):
                yield Doubt(
                    kind="name", side="target", begin=match.start(), end=match.end(),
                    words=f"the name {written} has become {match.group()}",
                )  # fmt: skip
                break


def _lacks_middle(word: str, name: str) -> bool:
    if "-" in name or len(name) - len(word) < _LEAST_DROPPED or len(word) < 2 * _LEAST_KEPT:
        return False
    return any(
        name.startswith(word[:place]) and name.endswith(word[place:])
        for place in range(_LEAST_KEPT, len(word) - _LEAST_KEPT + 1)
    )


def find_names(text: str) -> list[re.Match[str]]:
    """Find words with a capital that no beginning of a sentence explains."""
    if _is_in_capitals(text):
        return []
    found = []
    for match in WORD.finditer(text):
        before = text[: match.start()]
        is_first = not before.strip() or _SENTENCE_END.search(before) is not None
        if match.group()[0].isupper() and len(match.group()) > 1 and not is_first:
            found.append(match)
    return found


def _is_in_capitals(text: str) -> bool:
    letters = [each for each in text if each.isalpha()]
    return bool(letters) and sum(map(str.isupper, letters)) > len(letters) / 2


def fold(word: str) -> str:
    """Fold case and accents."""
    plain = unicodedata.normalize("NFD", word.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))
