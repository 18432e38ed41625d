"""The ASGI application: routes of all protocols over one service."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.error_responses import write_error_response
from dragoman.serving.page import page_api
from dragoman.serving.page.broken_models import BrokenModels
from dragoman.serving.page.page_runs import WatchedRuns
from dragoman.serving.page.side_models import SideModels
from dragoman.serving.protocols import google, libretranslate, marian, opus_mt, translate_forms
from dragoman.serving.protocols.deepl import deepl
from dragoman.serving.protocols.openapi import openapi
from dragoman.serving.service import Service

PROTOCOLS = (translate_forms, libretranslate, deepl, google, opus_mt, marian, openapi)
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def build_app(
    service: Service,
    keys: ApiKeys,
    runs: WatchedRuns | None = None,
    broken: BrokenModels | None = None,
) -> Starlette:
    """Build the application with the routes of all protocols.

    Parameters
    ----------
    service : Service
        Translates.
    keys : ApiKeys
        API keys and limits.
    runs : WatchedRuns | None
        Training runs to show in place of all else; None: those of the models.
    broken : BrokenModels | None
        Models without one part each, for the page.

    Returns
    -------
    Starlette
        The application; its state has ``service`` and ``keys``. It is meant to stand behind a
        `RequestLimiter`, which limits what reaches it.
    """
    protocols = [] if runs is not None else [route for each in PROTOCOLS for route in each.routes()]
    app = Starlette(
        routes=[*_health_routes(), *protocols, *page_api.routes()],
        exception_handlers={HTTPException: _write_error},
    )
    # A redirect would echo the Host header, which a client can forge.
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.keys = keys
    app.state.runs = runs
    app.state.broken = broken
    app.state.side_models = SideModels()
    return app


def _health_routes() -> list[BaseRoute]:
    return [
        Route("/health", _health),
        Route("/ready", _ready),
        Route("/metrics", _metrics),
    ]


async def _health(request: WebRequest) -> Response:  # noqa: ARG001
    """Answer a liveness probe."""
    return JSONResponse({"status": "ok"})


async def _ready(request: WebRequest) -> Response:
    """Answer a readiness probe: 200 if texts are accepted, otherwise 503."""
    if not request.app.state.service.is_accepting:
        return JSONResponse({"status": "not ready"}, status_code=503)
    if not await request.app.state.keys.state.check():
        reason = "the state cannot be reached"
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
    return JSONResponse({"status": "ready"})


async def _metrics(request: WebRequest) -> Response:
    """Export metrics for Prometheus."""
    return Response(request.app.state.service.metrics.write(), media_type=METRICS_TYPE)


async def _write_error(request: WebRequest, error: Exception) -> Response:
    """Write the error for unknown paths and wrong methods in the words of the path’s protocol."""
    assert isinstance(error, HTTPException)
    headers, content = write_error_response(request.url.path, error.status_code, error.detail)
    response = Response(content, status_code=error.status_code, headers=error.headers)
    response.headers.update({name.decode(): value.decode() for name, value in headers})
    return response
