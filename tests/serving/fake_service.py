"""A service that answers at once, for tests of what protocols make of it."""

import asyncio
import warnings
from types import SimpleNamespace

from dragoman.serving.app import build_app
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.service_types import Answer, Language, ServiceError

with warnings.catch_warnings():  # It wants a library that few have yet.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient
    from starlette.testclient import WebSocketDenialResponse as WebSocketDenialResponse


class FakeService:
    """Writes every text in capitals; remembers what it was asked, and fails when told to."""

    def __init__(self, **options):
        self.options = ServeOptions(**options)
        self.requests = []
        self.error = None
        self.is_held = False
        self.formality = {}
        self.is_ready = self.is_accepting = True
        self.metrics = Metrics()

    async def translate(self, request):
        self.requests.append(request)
        while self.is_held:
            await asyncio.sleep(0.005)
        if self.error is not None:
            raise self.error
        return [
            Answer(
                text=text.upper(),
                source=request.source or "en",
                path=(request.source or "en", request.target),
                num_characters=len(text),
                alternatives=tuple(text.title() for _ in range(request.num_alternatives)),
                confidence=None if request.source else 0.876,
                translation_confidence=0.7651 if request.wants_confidence and text else None,
            )
            for text in request.texts
        ]

    def detect(self, text):
        assert isinstance(text, str)
        return [("en", 0.876), ("fr", 0.124), ("pt", 0.0)]

    def languages(self):
        return [
            Language(code="en", name="English", targets=("fr", "pt")),
            Language(code="fr", name="French", targets=("en", "pt")),
            Language(code="pt", name="Portuguese", targets=()),
        ]

    def check_formality(self, source, target, wanted):
        pass

    def models(self):
        pairs = [("en", "fr"), ("fr", "en"), ("en", "pt")]
        return [
            SimpleNamespace(
                source=source, target=target, formality=self.formality.get(target, frozenset())
            )
            for source, target in pairs
        ]


def talk_to(service, keys=None):
    """Make a client that talks to a service without a socket."""
    return TestClient(build_app(service, ApiKeys() if keys is None else keys))


def fail(kind, **details):
    """Make an error with details that some protocols show."""
    limits = {"length": 60, "limit": 50} if kind.startswith("too_") else {}
    return ServiceError(kind, f"it is {kind}", details={**limits, **details})
