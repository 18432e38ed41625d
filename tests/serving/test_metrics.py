"""Figures say what happened, and nothing of who asked or for what."""

import asyncio
import re

from prometheus_client.parser import text_string_to_metric_families

from dragoman.serving import metrics as module
from dragoman.serving.metrics import Metrics
from dragoman.serving.queue.batching import BatchQueue
from dragoman.serving.queue.pending_requests import PendingRequest
from dragoman.serving.service_types import Client


def read(metrics):
    """Read the figures as Prometheus would."""
    text = metrics.write().decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_model_s_queue_batches_and_speed_are_there(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    metrics = Metrics()
    queue = BatchQueue(batch_tokens=100, queue_tokens=100, wait_seconds=0.0)
    figures = metrics.watch_model("fr-en", queue)
    loop = asyncio.new_event_loop()
    queue.submit(
        PendingRequest(client=Client(name="x"), tasks=["a", "b"], costs=[10, 20], loop=loop)
    )
    figures.record_batch(3, 120, 0.5)
    now[0] += 30
    figures.record_batch(1, 60, 0.1)
    figures.count_target_tokens(99)
    found = read(metrics)
    assert found["dragoman_queue_sentences", "fr-en"] == 2
    assert found["dragoman_queue_tokens", "fr-en"] == 30
    assert found["dragoman_batch_sentences_sum", "fr-en"] == 4
    assert found["dragoman_batch_tokens_sum", "fr-en"] == 180
    assert found["dragoman_batch_seconds_count", "fr-en"] == 2
    assert found["dragoman_tokens_total", "fr-en", "source"] == 180
    assert found["dragoman_tokens_total", "fr-en", "target"] == 99
    assert found["dragoman_tokens_per_second", "fr-en"] == 180 / 60
    now[0] += 45  # the first batch is more than a minute ago
    assert read(metrics)["dragoman_tokens_per_second", "fr-en"] == 60 / 60
    loop.close()


def test_requests_are_counted_by_route_and_status():
    metrics = Metrics()
    metrics.count_request()
    metrics.count_request()
    metrics.record_response("/translate", 200, 0.02)
    metrics.count_failure("overloaded")
    metrics.count_cache_lookups(3, 1)
    found = read(metrics)
    assert found["dragoman_requests_in_progress",] == 1
    assert found["dragoman_requests_total", "/translate", "200"] == 1
    assert found["dragoman_request_seconds_sum", "/translate"] == 0.02
    assert found["dragoman_failures_total", "overloaded"] == 1
    assert (found["dragoman_cache_total", "yes"], found["dragoman_cache_total", "no"]) == (3, 1)


def test_no_label_tells_who_asked():
    metrics = Metrics()
    queue = BatchQueue(batch_tokens=100, queue_tokens=100, wait_seconds=0.0)
    metrics.watch_model("fr-en", queue).record_batch(1, 1, 1.0)
    metrics.count_request()
    metrics.record_response("/translate", 200, 0.02)
    metrics.count_failure("quota")
    metrics.count_cache_lookups(1, 1)
    labels = set(re.findall(r"(\w+)=", metrics.write().decode()))
    assert labels == {"model", "route", "status", "kind", "found", "side", "le"}
