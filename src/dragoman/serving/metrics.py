"""Prometheus metrics of a running server."""

import time
from collections import deque

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dragoman.serving.queue.batching import BatchQueue

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_TOKENS = (16, 64, 256, 1024, 4096, 16384)
RECENT_SECONDS = 60.0


class Metrics:
    """Metrics of the server; no label contains keys, addresses or text.

    Notes
    -----
    The labels are the names of the models, the paths of the routes and status codes: a few, however
    many clients there are.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "dragoman_requests", "Requests answered", ["route", "status"], registry=registry
        )
        self._request_seconds = Histogram(
            "dragoman_request_seconds", "Time from request to answer", ["route"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._in_progress = Gauge(
            "dragoman_requests_in_progress", "Requests not yet answered", registry=registry
        )
        self._queue_sentences = Gauge(
            "dragoman_queue_sentences", "Sentences that wait", ["model"], registry=registry
        )
        self._queue_tokens = Gauge(
            "dragoman_queue_tokens", "Source subwords that wait", ["model"], registry=registry
        )
        self._batch_sentences = Histogram(
            "dragoman_batch_sentences", "Sentences of a batch", ["model"],
            buckets=_SENTENCES, registry=registry,
        )  # fmt: skip
        self._batch_tokens = Histogram(
            "dragoman_batch_tokens", "Source subwords of a batch", ["model"],
            buckets=_TOKENS, registry=registry,
        )  # fmt: skip
        self._batch_seconds = Histogram(
            "dragoman_batch_seconds", "Time a batch took", ["model"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._tokens = Counter(
            "dragoman_tokens", "Subwords read and written", ["model", "side"], registry=registry
        )
        self._speed = Gauge(
            "dragoman_tokens_per_second", "Source subwords a second, over the last minute",
            ["model"], registry=registry,
        )  # fmt: skip
        self._cached = Counter(
            "dragoman_cache", "Sentences looked up in the cache", ["found"], registry=registry
        )
        self._found, self._missed = self._cached.labels("yes"), self._cached.labels("no")
        self._answers: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._failures = Counter(
            "dragoman_failures", "Requests refused or failed, by kind", ["kind"], registry=registry
        )

    def watch_model(self, name: str, queue: BatchQueue) -> "ModelMetrics":
        """Create the metrics of a model and observe its queue."""
        self._queue_sentences.labels(name).set_function(lambda: queue.num_sentences)
        self._queue_tokens.labels(name).set_function(lambda: queue.num_tokens)
        figures = ModelMetrics(
            sentences=self._batch_sentences.labels(name),
            tokens=self._batch_tokens.labels(name),
            seconds=self._batch_seconds.labels(name),
            read=self._tokens.labels(name, "source"),
            written=self._tokens.labels(name, "target"),
        )
        self._speed.labels(name).set_function(figures.recent_speed)
        return figures

    def count_cache_lookups(self, num_found: int, num_missing: int) -> None:
        """Count cache hits and misses in sentences."""
        if num_found:
            self._found.inc(num_found)
        if num_missing:
            self._missed.inc(num_missing)

    def count_failure(self, kind: str) -> None:
        """Count a failed request by kind of error."""
        self._failures.labels(kind).inc()

    def count_request(self) -> None:
        """Count a request as in progress."""
        self._in_progress.inc()

    def record_response(self, route: str, status: int, seconds: float) -> None:
        """Record status and duration of a finished request."""
        self._in_progress.dec()
        if (route, status) not in self._answers:
            counter = self._requests.labels(route, str(status))
            self._answers[route, status] = counter, self._request_seconds.labels(route)
        counter, histogram = self._answers[route, status]
        counter.inc()
        histogram.observe(seconds)

    def write(self) -> bytes:
        """Export all metrics as text."""
        return generate_latest(self._registry)


class ModelMetrics:
    """Metrics of one model.

    Parameters
    ----------
    sentences : Histogram
        Of batches.
    tokens : Histogram
        Of batches.
    seconds : Histogram
        Of batches.
    read : Counter
        Source subwords.
    written : Counter
        Target subwords.
    """

    def __init__(
        self,
        *,
        sentences: Histogram,
        tokens: Histogram,
        seconds: Histogram,
        read: Counter,
        written: Counter,
    ) -> None:
        self._sentences = sentences
        self._tokens = tokens
        self._seconds = seconds
        self._read = read
        self._written = written
        self._recent: deque[tuple[float, int]] = deque()

    def record_batch(self, num_sentences: int, num_tokens: int, seconds: float) -> None:
        """Record size and duration of a batch."""
        self._sentences.observe(num_sentences)
        self._tokens.observe(num_tokens)
        self._seconds.observe(seconds)
        self._read.inc(num_tokens)
        self._recent.append((time.monotonic(), num_tokens))
        self._forget()

    def count_target_tokens(self, num_tokens: int) -> None:
        """Count generated subwords."""
        self._written.inc(num_tokens)

    def recent_speed(self) -> float:
        """Return source subwords a second, averaged over the last minute."""
        self._forget()
        return sum(tokens for _, tokens in list(self._recent)) / RECENT_SECONDS

    def _forget(self) -> None:
        """Drop measurements older than a minute."""
        oldest = time.monotonic() - RECENT_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            try:
                self._recent.popleft()
            except IndexError:  # the other thread was faster
                return
