"""Language identification among the served languages."""

import functools
from collections.abc import Container, Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

from dragoman.serving.languages import name_language
from dragoman.serving.service_types import ServiceError

MOST_CHARACTERS = 4000
"""What is looked at of a text: more does not change the answer."""

SMALLEST_SHARE = 0.2
"""A language is taken for a likelier one that cannot be translated with so much of its share."""

# Languages whose nearest relative the identifier knows by another code.
_NEAR = {"nb": "no", "zt": "zh", "fil": "tl", "iw": "he", "in": "id", "jw": "jv"}


@functools.cache
def _load() -> LanguageIdentifier:
    """Load the identifier once: unpacking takes a second."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageDetector:
    """Identifies the language of a text.

    Parameters
    ----------
    languages : Sequence[str]
        Codes of the languages among which to choose, such as “en” and “pt-BR”.

    Notes
    -----
    Confidences are shares of the given languages and sum to 1, whatever language a text is in. Of a
    language that the identifier has never seen, and of a text without letters, nothing is known:
    such languages come last with 0, and all languages of such a text get the same, in the order in
    which they were given.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = list(dict.fromkeys(languages))
        whole = _load()
        known = set(whole.labels)
        self._labels: dict[str, str] = {}
        for code in self._languages:
            main = code.replace("_", "-").split("-")[0].lower()
            label = _NEAR.get(main, main)
            if label in known:
                self._labels[code] = label
        # A copy shares the tables but has its own set of languages.
        self._identifier = LanguageIdentifier(
            whole.nb_ptc,
            whole.nb_pc,
            whole.nb_classes,
            whole.tk_nextmove,
            whole.tk_output,
            norm_probs=True,
            tk_row=whole.tk_row,
        )
        if self._labels:
            self._identifier.set_languages(set(self._labels.values()))

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Rank the served languages by confidence."""
        text = text[:MOST_CHARACTERS]
        if not any(map(str.isalpha, text)):
            return [(code, 1 / len(self._languages)) for code in self._languages]
        ranked = dict(self._identifier.rank(text)) if self._labels else {}
        shares = {code: ranked[label] for code, label in self._labels.items()}
        # Codes of one language (pt-BR and pt-PT) share its probability.
        total = sum(shares.values()) or 1.0
        found = [(code, shares.get(code, 0.0) / total) for code in self._languages]
        return sorted(found, key=lambda each: -each[1])


def choose_source(
    found: Sequence[tuple[str, float]], fitting: Container[str], target: str
) -> tuple[str, float]:
    """Choose the source language from the ranking of the detector.

    Parameters
    ----------
    found : Sequence[tuple[str, float]]
        Languages and confidences, from `LanguageDetector.detect`.
    fitting : Container[str]
        Codes of those that can become the target, which are the target itself and others.
    target : str
        The language that the text is to become.

    Returns
    -------
    tuple[str, float]
        The likeliest language that fits, if it is likely at all beside the likeliest, and how sure
        it is. A text that has no letters, or too few to tell, can be any language.
    """
    likeliest, best = found[0]
    for code, share in found:
        if code in fitting and share >= SMALLEST_SHARE * best:
            return code, share
    raise ServiceError(
        "unknown_language",
        f"the text seems to be {name_language(likeliest)} ({likeliest}), which no model translates "
        f"to {target}; give its source language",
        details={"language": likeliest, "parameter": "source"},
    )
