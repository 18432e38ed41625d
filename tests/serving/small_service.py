"""Small models to serve in tests, made of the tiny folder that all tests share."""

import asyncio
import json
import shutil
from pathlib import Path

from dragoman.serving.language_pairs import load_models
from dragoman.serving.options import ServeOptions
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, Request

CLIENT = Client(name="somebody")


def copy_folder(path: Path, folder: Path, source: str, target: str) -> Path:
    """Copy a model folder as one of other languages."""
    copied = folder / f"{source}-{target}"
    shutil.copytree(path, copied)
    facts = json.loads((copied / "dragoman.json").read_text())
    facts |= {"source_language": source, "target_language": target, "digest": None}
    (copied / "dragoman.json").write_text(json.dumps(facts))
    return copied


def make_service(paths, **options) -> Service:
    """Make a service that is not started."""
    return Service(load_models(paths, "cpu"), ServeOptions(**options))


def ask(*texts: str, source="en", target="fr", client=CLIENT, **more) -> Request:
    """Make a request."""
    return Request(texts=texts, source=source, target=target, client=client, **more)


def translate(service: Service, *requests: Request) -> list:
    """Start a service, send requests to it at the same time, and stop it."""

    async def send():
        service.start()
        try:
            return await asyncio.gather(
                *(service.translate(request) for request in requests), return_exceptions=True
            )
        finally:
            await asyncio.to_thread(service.stop)

    return asyncio.run(send())
