"""Marks such as “>>fra<<” and “>>formal<<” that tell a model which translation is wanted."""

import re
from collections.abc import Iterable, Sequence

from dragoman.errors import OptionError
from dragoman.text.piece_order import LANGUAGE_MARK

FORMALITY = {"more": "formal", "less": "informal"}
"""What a translation may be, and what its customary mark is called."""
_TYPED = re.compile(r"\s*>>([^\s<>]{1,40})<<\s*")

LONGEST_MARK = 40

# ISO 639-3 codes, as OPUS-MT's marks have them, of languages with a code of two letters.
_TWO_LETTERS = """
aar aa|abk ab|afr af|aka ak|amh am|arg an|ara ar|arb ar|asm as|ava av|aym ay|aze az|azj az|bak ba
bel be|bul bg|bih bh|bis bi|bam bm|ben bn|bod bo|bre br|bos bs|cat ca|che ce|cha ch|cos co|cre cr
ces cs|chv cv|cym cy|dan da|deu de|div dv|dzo dz|ewe ee|ell el|eng en|epo eo|spa es|est et|eus eu
fas fa|pes fa|ful ff|fin fi|fij fj|fao fo|fra fr|fry fy|gle ga|gla gd|glg gl|grn gn|guj gu|glv gv
hau ha|heb he|hin hi|hrv hr|hat ht|hun hu|hye hy|ina ia|ind id|ile ie|ibo ig|ido io|isl is|ita it
iku iu|jpn ja|jav jv|kat ka|kon kg|kik ki|kaz kk|kal kl|khm km|kan kn|kor ko|kau kr|kas ks|kur ku
kmr ku|kom kv|cor kw|kir ky|lat la|ltz lb|lug lg|lim li|lin ln|lao lo|lit lt|lub lu|lav lv|lvs lv
mlg mg|plt mg|mah mh|mri mi|mkd mk|mal ml|mon mn|khk mn|mar mr|msa ms|zsm ms|mlt mt|mya my|nob nb
nep ne|npi ne|nld nl|nno nn|nor no|nav nv|nya ny|oci oc|oji oj|orm om|ori or|ory or|pan pa|pol pl
pus ps|por pt|que qu|roh rm|run rn|ron ro|rus ru|kin rw|san sa|srd sc|snd sd|sme se|sin si|slk sk
slv sl|smo sm|sna sn|som so|sqi sq|srp sr|ssw ss|sot st|sun su|swe sv|swa sw|swh sw|tam ta|tel te
tgk tg|tha th|tir ti|tuk tk|tgl tl|tsn tn|ton to|tur tr|tso ts|tat tt|tah ty|uig ug|ukr uk|urd ur
uzb uz|uzn uz|ven ve|vie vi|vol vo|wln wa|wol wo|xho xh|yid yi|yor yo|zha za|zho zh|cmn zh|zul zu
"""
TWO_LETTERS = dict(
    pair.split(" ") for line in _TWO_LETTERS.strip().split("\n") for pair in line.split("|")
)


def find_targets(pieces: Iterable[str]) -> list[str]:
    """List the target languages whose marks are in a vocabulary, as the marks spell them."""
    marks = (LANGUAGE_MARK.fullmatch(piece) for piece in pieces if "<<" in piece)
    return sorted({mark[1][2:-2] for mark in marks if mark} - set(FORMALITY.values()))


def find_formality(pieces: Iterable[str]) -> dict[str, str]:
    """Find the customary marks of formality in a vocabulary."""
    marks = (LANGUAGE_MARK.fullmatch(piece) for piece in pieces if "<<" in piece)
    found = {mark[1] for mark in marks if mark}
    return {kind: f">>{name}<<" for kind, name in FORMALITY.items() if f">>{name}<<" in found}


def is_mark(text: str) -> bool:
    """Tell whether a text can be a mark: one word, and not a long one."""
    return 0 < len(text) <= LONGEST_MARK and text.isprintable() and text.split() == [text]


def shorten(target: str) -> str:
    """Return the customary code of a target language: “fr” for “fra”, “pt-BR” for “pt_BR”."""
    main, *rest = target.replace("_", "-").split("-")
    return "-".join([TWO_LETTERS.get(main, main), *rest])


def match_target(code: str, targets: Sequence[str]) -> str | None:
    """Find the target language that a code means: as it is spelt, or as short as is customary."""
    if code in targets:
        return code
    wanted = shorten(code).casefold()
    found = [each for each in targets if shorten(each).casefold() == wanted]
    return found[0] if found else None


def take_mark(text: str, targets: Sequence[str]) -> tuple[str, str | None]:
    """Take the mark off a text that begins with one of a model's.

    Returns
    -------
    tuple[str, str | None]
        The text without its mark, and the target language; None: it has none.
    """
    found = _TYPED.match(text)
    target = match_target(found[1], targets) if found else None
    return (text, None) if found is None or target is None else (text[found.end() :], target)


def choose_target(code: str | None, targets: Sequence[str]) -> str:
    """Choose the target language of a model that has several.

    Parameters
    ----------
    code : str | None
        What the user says.
    targets : Sequence[str]
        What the model has.
    """
    if code is None and len(targets) == 1:
        return targets[0]
    found = None if code is None else match_target(code, targets)
    if found is None:
        fault = "the model has several" if code is None else f"“{code}” is none of the model's"
        raise OptionError(
            f"{fault} target languages; choose one with --into, or begin the text with its mark, "
            f"as >>{targets[0]}<<: {', '.join(targets)}"
        )
    return found
