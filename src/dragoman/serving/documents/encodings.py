"""Encodings of text files: byte order marks, UTF-8, declarations, statistics of letters."""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.serving.service_types import ServiceError

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# Letters beyond ASCII of languages, the most frequent first where there are more than ten.
_ALPHABETS = {
    "windows-1252": (
        *(
            "äöüß",
            "éèàçêâîôûëïùœæÿ",
            "áéíóúñü",
            "ãçáéíóõêâôàúü",
            "àèéìòù",
            "äöåé",
            "æøåéó",
            "ëéïèöü",
        ),
        *("áíðéöóþúæý", "çàèéíïòóúü"),
    ),
    "windows-1250": (
        *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšž"),
    ),
    "windows-1254": ("ıişğüöçâîû",),
    "windows-1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
    "windows-1251": ("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", "оаиентврсікдлупмязьгбчхцйїжєшющфґ"),
    "koi8-r": ("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",),
    "windows-1253": ("αοιετσνηυρπκμλςωίόάέδγήύχθφβώξζψϊϋΐΰ",),
    "windows-1255": ("יוהלאמרתבשנדעכחקפצגטםזסןךץף",),
    "windows-1256": ("اليمنرتبدعوسهكفحقةجشصىخطأذضئثزغءظإآؤ",),
}
# What any language has; “º” and the like are of one alone, but no letters that would tell.
_NEUTRAL = frozenset("«»‹›“”„‟‘’‚–—…•·°§©®™€£¥¿¡ªº№\u00a0\u00ad")
_SURE, _POSSIBLE, _MARGIN, _PREFERENCE = 0.7, 0.5, 0.04, 0.05
_SAMPLE = 20_000


def _weigh(alphabet: str) -> dict[str, float]:
    """Give each letter a weight: rare ones of a whole alphabet less, capitals less."""
    num_frequent = 10 if len(alphabet) > 20 else len(alphabet)
    weights = {each: 1.0 if place < num_frequent else 0.6 for place, each in enumerate(alphabet)}
    capitals = {each.upper(): 0.8 * weight for each, weight in weights.items()}
    return capitals | weights  # Scripts without capitals have the same letters in both.


_WEIGHTS = {name: [_weigh(each) for each in many] for name, many in _ALPHABETS.items()}

_DECLARATION = re.compile(
    rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,30})"""
    rb"""|<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w-]{1,30})""",
    re.IGNORECASE,
)
_DECLARABLE = re.compile(
    r"(?:iso-?8859-\d+|latin-?\d|windows-125\d|cp125\d|koi8-[ru]|gb\w+|big5|shift_jis|euc-\w+)",
    re.I,
)


@dataclass(frozen=True, kw_only=True)
class DecodedText:
    """A decoded file.

    Parameters
    ----------
    text : str
        Its text.
    encoding : str
        How it was encoded.
    encode : Callable[[str], bytes]
        Encodes a text in the same way, with the same byte order mark.
    """

    text: str
    encoding: str
    encode: Callable[[str], bytes]


def decode_text(content: bytes, *, is_markup: bool = False) -> DecodedText:
    """Decode a file.

    Parameters
    ----------
    content : bytes
        The file.
    is_markup : bool
        Whether it may declare its encoding as web pages do, and may write what the encoding lacks
        as character references.

    Notes
    -----
    What is not UTF-8 is taken for the legacy encoding in which its letters beyond ASCII are most
    like those of a language, or refused if that is not clear.
    """
    mark = next((each for each in _MARKS if content.startswith(each)), b"")
    body = content[len(mark) :]
    encoding = _MARKS[mark] if mark else _find_encoding(body, is_markup)
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise _bad_request(
            f"the file is not {encoding.upper()} throughout: byte {len(mark) + error.start + 1} is "
            "wrong; save it as UTF-8"
        ) from None
    if "\0" in text:
        raise _bad_request("the file has a NUL character, so it is no text")

    def encode(written: str) -> bytes:
        try:
            return mark + written.encode(encoding, "xmlcharrefreplace" if is_markup else "strict")
        except UnicodeEncodeError as error:
            raise _bad_request(
                f"the file is {encoding}, which lacks “{written[error.start]}” of the translation; "
                "save it as UTF-8"
            ) from None

    return DecodedText(text=text, encoding=encoding, encode=encode)


def _find_encoding(content: bytes, is_markup: bool) -> str:
    """Find the encoding of a file without a byte order mark, or raise."""
    try:
        is_utf8 = bool(content.decode()) and not content.isascii()
    except UnicodeDecodeError:
        is_utf8 = False
    declared = _read_declaration(content) if is_markup and not is_utf8 else None
    if declared is not None:
        return declared
    zeros = content.count(0)
    if zeros and len(content) % 2 == 0:
        for encoding, first in (("utf-16-le", 1), ("utf-16-be", 0)):
            if content[first::2].count(0) == zeros >= len(content) / 100:
                return encoding
    is_utf8 = is_utf8 or content.isascii() or _is_nearly_utf8(content)
    return "utf-8" if is_utf8 else _guess(content)


def _read_declaration(content: bytes) -> str | None:
    """Read a legacy encoding from the head of a web page, if the page is in it."""
    found = _DECLARATION.search(content, 0, 2048)
    name = next((each for each in found.groups() if each), b"").decode() if found else ""
    if not _DECLARABLE.fullmatch(name):
        return None
    try:  # Browsers take Latin-1 for Windows' extension of it.
        encoding = codecs.lookup(name).name
        encoding = "windows-1252" if encoding == "iso8859-1" else encoding
        content.decode(encoding)
    except (LookupError, UnicodeDecodeError):
        return None
    return encoding


def _is_nearly_utf8(content: bytes) -> bool:
    """Whether more of the characters beyond ASCII are right UTF-8 than wrong."""
    text = content.decode(errors="replace")
    wrong = text.count("\ufffd")
    return sum(not each.isascii() for each in text) > 2 * wrong


def _guess(content: bytes) -> str:
    """Guess a legacy encoding by its letters, or raise with the guess."""
    sample = bytes(each for each in content if each >= 0x80)[:_SAMPLE]
    read: dict[str, tuple[float, str]] = {}
    for encoding in _ALPHABETS:
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            continue
        text = sample.decode(encoding)
        liking = _PREFERENCE if encoding == "windows-1252" else 0.0
        read[encoding] = (_score(text, encoding) + liking, text)
    if not read:
        raise _bad_request("the file is in no known encoding; save it as UTF-8")
    best = max(read, key=lambda each: read[each][0])
    score, text = read[best]
    others = [other for other, different in read.values() if different != text]
    if score < _POSSIBLE:
        raise _bad_request("the file is not UTF-8; save it as UTF-8")
    if score < _SURE or score - max(others, default=0.0) < _MARGIN:
        raise _bad_request(f"the file is not UTF-8 but, perhaps, {best}; save it as UTF-8")
    return best


def _score(text: str, encoding: str) -> float:
    """Compute how usual letters are in the language of an encoding that they fit best."""
    letters = [each for each in text if each not in _NEUTRAL]
    if not letters:
        return 1.0
    return max(
        sum(weights.get(each, 0.0) for each in letters) / len(letters)
        for weights in _WEIGHTS[encoding]
    )


def _bad_request(message: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {message}")
