"""Prefetch items of an iterator in a background thread."""

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def prefetched(items: Iterable[Item], depth: int = 8) -> Generator[Item, None, None]:
    """Run an iterator ahead in a background thread."""
    ready: queue.Queue[tuple[str, object]] = queue.Queue(maxsize=depth)
    is_abandoned = threading.Event()

    def put(kind: str, value: object) -> bool:
        while not is_abandoned.is_set():
            try:
                ready.put((kind, value), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def run() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:  # noqa: BLE001 - handed over to the reader, who raises it
            put("error", error)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value  # type: ignore[misc]
            yield value  # type: ignore[misc]
    finally:
        is_abandoned.set()
        worker.join()
