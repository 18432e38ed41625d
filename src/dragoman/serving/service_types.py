"""Types shared by protocols and service: clients, requests, answers, errors, pivot paths."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dragoman.decoding.options import Precision

if TYPE_CHECKING:
    from dragoman.decoding.translator import Translator

ErrorKind = Literal[
    "bad_request",
    "unknown_language",
    "too_long",
    "too_many_texts",
    "bad_key",
    "missing_key",
    "forbidden",
    "too_many_requests",
    "quota",
    "overloaded",
    "not_found",
    "not_ready",
    "cancelled",
    "failed",
]
Markup = Literal["text", "html", "xml"]
Formality = Literal["more", "less", "prefer_more", "prefer_less"]
# Character spans: source begin, source end, target begin, target end.
Span = tuple[int, int, int, int]


OVERLOADED_MESSAGE = "Slowdown: too many texts are waiting to be translated; try again"


class ServiceError(Exception):
    """An error that a protocol reports to its client.

    Parameters
    ----------
    kind : ErrorKind
        What is wrong; each protocol has its own status code and body for it.
    message : str
        One line for people.
    retry_after : float | None
        Seconds after which the same request may succeed; None: nobody knows, or never.
    details : dict[str, object] | None
        Such as ``{"language": "zz", "parameter": "target"}`` or ``{"limit": 50, "length": 60}``.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.retry_after = retry_after
        self.details: dict[str, object] = {} if details is None else details


@dataclass(frozen=True, kw_only=True)
class Client:
    """The sender of a request.

    Parameters
    ----------
    name : str
        Name of the key, or address: unit of fair queueing and rate limits. Never the key itself.
    requests_per_minute : int | None
        How many requests are answered; None: any number.
    characters_per_month : int | None
        How many characters are translated in a calendar month; None: any number.
    has_key : bool
        Whether it sent a valid key.
    """

    name: str
    requests_per_minute: int | None = None
    characters_per_month: int | None = None
    has_key: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """Texts of one client to translate into one language.

    Parameters
    ----------
    texts : tuple[str, ...]
        The texts.
    source : str | None
        Their language; None: found for each text by itself.
    target : str
        The language that they are to become.
    client : Client
        Who asks.
    num_alternatives : int
        How many other translations are wanted besides the best.
    beam_size : int | None
        How many hypotheses the search keeps; None: as the model says.
    prefix : str
        How the translation must begin; with a single text only.
    terms : tuple[tuple[str, str], ...]
        A glossary: where the first occurs, the second must appear.
    model : str | None
        A model by its name; None: by the languages.
    wants_alignment : bool
        Whether to say which characters translate which.
    wants_confidence : bool
        Whether to say how probable it is that a translation is good.
    markup : Markup
        Whether the texts have tags.
    formality : Formality | None
        Whether the translation is to be formal (“more”) or not; what is only preferred is no reason
        to refuse a text where no model knows the difference.
    ignore_tags : frozenset[str]
        Tags of XML or HTML whose content stays as it is.
    splits_sentences : bool
        Whether sentences are translated one by one; otherwise a text is one sentence, cut only
        where the model could not read it.
    """

    texts: tuple[str, ...]
    source: str | None
    target: str
    client: Client
    num_alternatives: int = 0
    beam_size: int | None = None
    prefix: str = ""
    terms: tuple[tuple[str, str], ...] = ()
    model: str | None = None
    wants_alignment: bool = False
    wants_confidence: bool = False
    markup: Markup = "text"
    formality: Formality | None = None
    ignore_tags: frozenset[str] = frozenset()
    splits_sentences: bool = True


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The translation of one text.

    Parameters
    ----------
    text : str
        The translation.
    source : str
        The language of the text, given or found.
    path : tuple[str, ...]
        The languages passed through: ``("fr", "en")``, ``("fr", "en", "es")`` by way of English,
        or ``("en",)`` for a text that was already in its target language.
    num_characters : int
        Of the text.
    alternatives : tuple[str, ...]
        Other translations, best first; perhaps fewer than were asked for.
    confidence : float | None
        From 0 to 1 how sure the found language is; None: it was given.
    alignment : tuple[Span, ...]
        Which characters translate which; nothing unless asked for, or for texts with tags.
    translation_confidence : float | None
        The share of the sentences that can be expected to be good; None: nobody asked, or a model
        has no calibration.
    notes : tuple[str, ...]
        What a person should know: a pivot language, an unusable term, a failed quality check.
    """

    text: str
    source: str
    path: tuple[str, ...]
    num_characters: int
    alternatives: tuple[str, ...] = ()
    confidence: float | None = None
    alignment: tuple[Span, ...] = ()
    translation_confidence: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Language:
    """A served language and its targets.

    Parameters
    ----------
    code : str
        Such as “fr”.
    name : str
        In English.
    targets : tuple[str, ...]
        Codes of the languages that it can become, directly or through a third; nothing for a
        language that is a target only.
    """

    code: str
    name: str
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A served model.

    Parameters
    ----------
    name : str
        The name of its folder, made unique.
    source : str
        The language that it reads.
    target : str
        The language that it writes; one that writes several stands once for each.
    family : str
        Such as “transformer”.
    translator : Translator
        To be used on the model's own thread only: see `Service.run_side_task`.
    precision : Precision
        In which processes of its own compute.
    into : str | None
        What tells a model of several target languages which one is wanted; None: it has one.
    formality : frozenset[str]
        Whether it writes formal translations (“more”) and informal ones (“less”) when told.
    """

    name: str
    source: str
    target: str
    family: str
    translator: "Translator"
    precision: Precision = "auto"
    into: str | None = None
    formality: frozenset[str] = frozenset()


# Paths through a third language of the request that the current task answers, in order.
_pivot_paths: ContextVar[dict[tuple[str, ...], None] | None] = ContextVar(
    "pivot_paths", default=None
)


def reset_pivot_paths() -> None:
    """Start to collect the pivot paths of the current task's request."""
    _pivot_paths.set({})


def record_pivot_paths(paths: Iterable[tuple[str, ...]]) -> None:
    """Record those paths that lead through a third language."""
    known = _pivot_paths.get()
    if known is not None:
        known.update(dict.fromkeys(path for path in paths if len(path) > 2))


def format_pivot_paths() -> str:
    """Format the recorded pivot paths as the value of a header."""
    paths = ", ".join("-".join(path) for path in _pivot_paths.get() or {})
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in paths)
