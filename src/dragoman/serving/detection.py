"""Language identification, with the served languages as prior."""

import functools
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

from dragoman.serving.languages import name_language
from dragoman.serving.service_types import ServiceError

MOST_CHARACTERS = 4000
"""What is looked at of a text: more does not change the answer."""

SMALLEST_SHARE = 0.2
"""A language is taken for a likelier one that cannot be translated with so much of its share."""

# Codes that the identifier has under another name.
_NEAR = {"nb": "no", "zt": "zh", "fil": "tl", "iw": "he", "in": "id", "jw": "jv"}
# Varieties that a model of the main language reads, unless they are served themselves.
_VARIETIES = {
    "ary": "ar", "arz": "ar", "ext": "es", "gcf": "ht", "gcr": "ht", "grc": "el", "hbo": "he",
    "lij": "it", "ltg": "lv", "nn": "no", "pcm": "en", "sdh": "ku", "uzs": "uz", "vec": "it",
    "wuu": "zh", "yue": "zh",
}  # fmt: skip
# How much is written in a language, beside 1 for most; of varieties little is.
_PRIORS = {
    "en": 8.0,
    **dict.fromkeys(("de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh"), 2.0),
}
_VARIETY_PRIOR = 0.1
# Clients of a server send the languages that it serves.
_SERVED_PRIOR = 4.0
_NO_LANGUAGE = "zxx"

SURE = 0.5
"""Share from which a text is taken to be in a language that is not served."""
SMALLEST_SERVED = 0.1
"""Share of all served languages together below which the text is in none of them."""
PRIOR_SHARE = 0.1
"""Share of what is likely anyway in what the texts of a request make likely for each other."""

Ranking = list[tuple[str, float]]


@functools.cache
def _load() -> LanguageIdentifier:
    """Load the identifier once: unpacking takes a second."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageDetector:
    """Identifies the language of a text.

    Parameters
    ----------
    languages : Sequence[str]
        Codes of the languages that are served, such as “en” and “pt-BR”.

    Notes
    -----
    The identifier's probabilities of all languages that it knows are multiplied by how likely each
    is to be sent: served ones, and those in which much is written, are likelier. Confidences are
    shares of all these, so that those of the served sum to less than 1 where the text may be in
    others. The likeliest other one is told only if it has more than `SURE`, or all served ones
    together less than `SMALLEST_SERVED`. Of a language that the identifier has never seen, and of a
    text without letters, nothing is known: such languages come last with 0, and all languages of
    such a text get the same, in the order in which they were given. Where such a language is
    served, none that is not served is looked for: the text might be in it.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = list(dict.fromkeys(languages))
        known = set(_load().labels)
        self._labels: dict[str, str] = {}
        for code in self._languages:
            main = code.replace("_", "-").split("-")[0].lower()
            label = _NEAR.get(main, main)
            if label in known:
                self._labels[code] = label
        served = set(self._labels.values())
        labels = known - {_NO_LANGUAGE} if len(self._labels) == len(self._languages) else served
        priors = {
            label: (_PRIORS.get(label, 1.0) if len(label) == 2 else _VARIETY_PRIOR)
            * (_SERVED_PRIOR if label in served else 1.0)
            for label in labels
        }
        self._priors = _normalise(priors)
        self._mains = {
            label: label if label in served else _VARIETIES.get(label, label)
            for label in self._priors
        }

    def detect_all(self, texts: Sequence[str]) -> list[Ranking]:
        """Rank the languages of each of the texts of a request by confidence.

        Notes
        -----
        A short text that could be several languages is likely to be in one that the others are in:
        the priors are replaced by the mean of the shares over all texts, one step of fitting a
        mixture. A text that is clearly in another language keeps that.
        """
        shares = [self._estimate_shares(text[:MOST_CHARACTERS]) for text in texts]
        told = [each for each in shares if each]
        if len(told) > 1:
            pooled: Counter[str] = Counter()
            for each in told:
                pooled.update(each)
            weights = {
                label: PRIOR_SHARE + (1 - PRIOR_SHARE) * pooled[label] / len(told) / prior
                for label, prior in self._priors.items()
            }
            shares = [
                _normalise({label: share * weights[label] for label, share in each.items()})
                for each in shares
            ]
        return [self._rank(each) for each in shares]

    def _estimate_shares(self, text: str) -> dict[str, float]:
        """Estimate the share of each language that the identifier knows; of no letters nothing."""
        if not any(map(str.isalpha, text)):
            return {}
        shares: Counter[str] = Counter()
        for label, share in _load().rank(text):
            if label in self._priors:
                shares[self._mains[label]] += share * self._priors[label]
        return _normalise(shares)

    def _rank(self, shares: Mapping[str, float]) -> Ranking:
        """Rank the served languages, and the likeliest other one if that is sure."""
        if not shares and self._labels:
            return [(code, 1 / len(self._languages)) for code in self._languages]
        # Codes of one language (pt-BR and pt-PT) share its probability.
        num_codes = Counter(self._labels.values())
        found = {code: shares[label] / num_codes[label] for code, label in self._labels.items()}
        served = sum(found.values())
        others = set(shares) - set(num_codes)
        other = max(others, key=lambda label: shares[label], default=None)
        if other and (shares[other] > SURE or served < SMALLEST_SERVED):
            found[other] = shares[other]
        ranked = {code: found.get(code, 0.0) for code in [*self._languages, *found]}
        return sorted(ranked.items(), key=lambda each: -each[1])


def _normalise(shares: Mapping[str, float]) -> dict[str, float]:
    total = sum(shares.values()) or 1.0
    return {label: share / total for label, share in shares.items()}


def choose_source(found: Ranking, fitting: Container[str], target: str) -> tuple[str, float]:
    """Choose the source language from the ranking of the detector.

    Parameters
    ----------
    found : Ranking
        Languages and confidences, from `LanguageDetector.detect_all`.
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
