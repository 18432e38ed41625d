"""JSON API of the web page: translation, attention, explanations, training runs, static files."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman.decoding.translator import Translator
from dragoman.errors import DragomanError
from dragoman.folder import WEIGHTS_FILE
from dragoman.insight.ablation import Head
from dragoman.insight.choices import list_choices
from dragoman.insight.explanation import NUM_MASKS, Explanation, explain_in_steps
from dragoman.serving.detection import choose_source
from dragoman.serving.documents.documents import find_sources
from dragoman.serving.http.request_heads import is_forwarded, is_loopback
from dragoman.serving.page.broken_models import BrokenModels
from dragoman.serving.page.page_desk import (
    check_characters,
    name_models,
    read_terms,
    write_doubts,
)
from dragoman.serving.page.page_document import ASSETS, read_asset, write_shell
from dragoman.serving.page.page_inside import give_inside, give_samples, give_terms, give_tree
from dragoman.serving.page.page_insight import (
    align_for_page,
    look_for_page,
    write_explanation,
    write_progress,
)
from dragoman.serving.page.page_request import (
    LONGEST_LOOK,
    MOST_MASKS,
    JsonFields,
    SentencePair,
    charge,
    check_length,
    check_origin,
    check_work,
    find_model,
    identify,
    read_fields,
    read_question,
    service_of,
)
from dragoman.serving.page.page_runs import Run, WatchedRuns, name_runs, read_run, read_run_facts
from dragoman.serving.page.side_models import (
    SideModels,
    list_stages,
    load_weights,
    translate_and_look,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Answer, ErrorKind, Request, ServiceError
from dragoman.training.log import METRICS_FILE

MOST_ALTERNATIVES = 8
MOST_CHOICES = 8
# Subwords read between two estimates, so that translation requests can interleave.
STEP_TOKENS = 4096

STATUS: dict[ErrorKind, int] = {
    "bad_request": 400,
    "unknown_language": 400,
    "too_long": 413,
    "too_many_texts": 413,
    "bad_key": 403,
    "missing_key": 401,
    "forbidden": 403,
    "too_many_requests": 429,
    "quota": 429,
    "overloaded": 429,
    "not_found": 404,
    "not_ready": 503,
    "cancelled": 503,
    "failed": 500,
}

# Only scripts, styles and requests of the page’s own server.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}

Handler = Callable[[WebRequest], Awaitable[Response]]


class TextPart(NamedTuple):
    """A sentence, possibly empty, and the white space after it."""

    text: str
    space: str


def routes() -> list[Route]:
    """List the routes of the page, its files and its API.

    Returns
    -------
    list[Route]
        For the web application; its state has ``service`` (or None), ``keys``, and, if run folders
        were named, ``runs``.
    """
    return [
        Route("/", give_index),
        Route("/page/{name}", give_asset),
        Route("/page/api/page", _answering(_describe)),
        Route("/page/api/shell", _answering(_give_shell)),
        Route("/page/api/translate", _answering(_translate), methods=["POST"]),
        Route("/page/api/choices", _answering(_choices), methods=["POST"]),
        Route("/page/api/alignment", _answering(_alignment), methods=["POST"]),
        Route("/page/api/attention", _answering(_attention), methods=["POST"]),
        Route("/page/api/why", _answering(_why), methods=["POST"]),
        Route("/page/api/inside", _answering(give_inside), methods=["POST"]),
        Route("/page/api/terms", _answering(give_terms), methods=["POST"]),
        Route("/page/api/tree", _answering(give_tree), methods=["POST"]),
        Route("/page/api/samples", _answering(give_samples), methods=["POST"]),
        Route("/page/api/runs", _answering(_list_runs)),
        Route("/page/api/runs/{number}", _answering(_run)),
        Route("/page/api/runs/{number}/facts", _answering(_run_facts)),
        Route("/page/api/runs/{number}/stages", _answering(_list_stages)),
        Route("/page/api/runs/{number}/look", _answering(_look_at_stage), methods=["POST"]),
        Route("/page/api/broken", _answering(_look_at_broken), methods=["POST"]),
    ]


def _answering(handler: Handler) -> Handler:
    """Wrap a handler: check the origin and turn errors into responses."""

    async def answer(request: WebRequest) -> Response:
        try:
            check_origin(request)
            return await handler(request)
        except ServiceError as error:
            return _write_error(error)
        except DragomanError as error:
            return _write_error(ServiceError("bad_request", str(error)))

    return answer


def _write_error(error: ServiceError) -> Response:
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    body = {"error": {"kind": error.kind, "message": error.message}}
    return JSONResponse(body, status_code=STATUS[error.kind], headers=headers)


async def _describe(request: WebRequest) -> Response:
    """Describe languages, models, runs and limits."""
    service: Service | None = getattr(request.app.state, "service", None)
    described: dict[str, Any] = {
        "languages": [],
        "models": [],
        "runs": _write_runs(request),
        "broken": None if (broken := _broken_of(request)) is None else broken.description,
        "needsKey": False,
        "limits": {"subwords": LONGEST_LOOK - 1, "masks": MOST_MASKS},
    }
    if service is not None:
        described["languages"] = [
            {"code": each.code, "name": each.name, "targets": each.targets}
            for each in service.languages()
        ]
        described["models"] = [
            {
                "name": each.name,
                "source": each.source,
                "target": each.target,
                "family": each.family,
                "beam": each.translator.options.beam_size,
            }
            for each in service.models()
        ]
        described["needsKey"] = request.app.state.keys.is_required
        options = service.options
        described["limits"] |= {"characters": options.max_characters, "beam": options.max_beam_size}
    return JSONResponse(described)


async def _give_shell(_request: WebRequest) -> Response:
    """Return the self-contained page into which the browser exports its state."""
    return PlainTextResponse(write_shell())


async def _translate(request: WebRequest) -> Response:
    service = service_of(request)
    fields = await read_fields(request)
    text, target = fields.text("text"), fields.text("target")
    check_characters(service, text)
    client = await charge(request, len(text))
    source, confidence = _find_source(service, text, fields.text("source", ""), target)
    prefix = fields.text("prefix", "")
    asked = Request(
        texts=(),
        source=source,
        target=target,
        num_alternatives=fields.number("alternatives", 0, MOST_ALTERNATIVES, 0),
        beam_size=fields.number("beam", 1, service.options.max_beam_size, 0) or None,
        prefix=prefix,
        model=fields.text("model", "") or None,
        wants_alignment=True,
        wants_confidence=True,
        terms=read_terms(fields, text, source, target),
        client=client,
    )
    parts = [TextPart(text, "")] if prefix else split_parts(service.split(text, asked))
    texts = [part.text for part in parts if part.text]
    answers: list[Answer] = []
    size = service.options.max_texts
    for first in range(0, len(texts), size):
        some = tuple(texts[first : first + size])
        answers += await service.translate(replace(asked, texts=some, splits_sentences=False))
    written = _write_translation(parts, answers, source, confidence)
    pairs = [(each["source"], each["text"]) for each in written["sentences"]]
    doubts = await asyncio.to_thread(write_doubts, service, pairs, source, target, asked.terms)
    for sentence, found in zip(written["sentences"], doubts, strict=True):
        sentence["doubts"] = found
    written["models"] = name_models(service, written["path"], asked.model or "")
    return JSONResponse(written)


def _find_source(service: Service, text: str, given: str, target: str) -> tuple[str, float | None]:
    """Return the given source language, or detect it."""
    if given:
        return given, None
    # The service rejects unknown targets.
    fitting = find_sources(service, target) or {each.code for each in service.languages()}
    return choose_source(service.detect(text), fitting, target)


def _write_translation(
    parts: list[TextPart], answers: list[Answer], source: str, confidence: float | None
) -> dict[str, Any]:
    """Format the parts of a text with their translations."""
    rest = iter(answers)
    sentences = []
    for part in parts:
        answer = next(rest) if part.text else None
        sentences.append(
            {
                "source": part.text,
                "space": part.space,
                "text": answer.text if answer else "",
                "alternatives": answer.alternatives if answer else [],
                "alignment": answer.alignment if answer else [],
                "confidence": answer.translation_confidence if answer else None,
            }
        )
    return {
        "sentences": sentences,
        "source": source,
        "confidence": confidence,
        "path": answers[0].path if answers else [],
        "notes": list(dict.fromkeys(note for answer in answers for note in answer.notes)),
    }


async def _choices(request: WebRequest) -> Response:
    pair, fields = await read_question(request)
    begun = pair._replace(translation=fields.text("prefix", ""))
    found = await service_of(request).run_side_task(
        pair.model, lambda translator: _find_choices(translator, begun)
    )
    return JSONResponse({"choices": found})


def _find_choices(translator: Translator, pair: SentencePair) -> list[dict[str, Any]]:
    check_length(translator, pair)
    return [
        {
            "word": each.word,
            "prefix": each.prefix,
            "translation": each.translation,
            "probability": round(each.probability, 5),
        }
        for each in list_choices(
            translator, pair.source, pair.translation, num_choices=MOST_CHOICES
        )
    ]


async def _alignment(request: WebRequest) -> Response:
    pair, _ = await read_question(request)
    service = service_of(request)
    found = await service.run_side_task(pair.model, lambda translator: _align(translator, pair))
    model = find_model(service, pair.model)
    texts = [(pair.source, pair.translation)]
    (doubts,) = write_doubts(service, texts, model.source, model.target)
    return JSONResponse(found | {"doubts": doubts})


def _align(translator: Translator, pair: SentencePair) -> dict[str, Any]:
    check_length(translator, pair)
    return align_for_page(translator, pair.source, pair.translation)


async def _attention(request: WebRequest) -> Response:
    pair, fields = await read_question(request)
    service = service_of(request)
    off = fields.heads("off")
    beam = fields.number("beam", 1, service.options.max_beam_size, 0) or None
    found = await service.run_side_task(
        pair.model, lambda translator: _look(translator, pair, off, beam)
    )
    return JSONResponse(found)


def _look(
    translator: Translator, pair: SentencePair, off: tuple[Head, ...], beam_size: int | None
) -> dict[str, Any]:
    check_length(translator, pair)
    return look_for_page(translator, pair.source, pair.translation, off=off, beam_size=beam_size)


async def _why(request: WebRequest) -> Response:
    """Stream an explanation as JSON lines while its estimates improve."""
    service = service_of(request)
    pair, fields = await read_question(request)
    num_masks = fields.number("masks", 16, MOST_MASKS, NUM_MASKS)
    seed = fields.number("seed", 0, 1 << 31, 1)
    # Errors surface in the first step, while a status can still be sent.
    steps, first = await service.run_side_task(
        pair.model, lambda translator: _begin_explaining(translator, pair, num_masks, seed)
    )

    async def lines() -> AsyncIterator[str]:
        yield json.dumps(write_explanation(first, num_masks), ensure_ascii=False) + "\n"
        try:
            while found := await service.run_side_task(pair.model, lambda _: next(steps, None)):
                yield json.dumps(write_progress(found, num_masks)) + "\n"
        except ServiceError as error:
            yield json.dumps({"error": {"kind": error.kind, "message": error.message}}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def _begin_explaining(
    translator: Translator, pair: SentencePair, num_masks: int, seed: int
) -> tuple[Iterator[Explanation], Explanation]:
    """Compute the first step of an explanation; return it with the iterator of the others."""
    num_tokens = check_length(translator, pair)
    check_work(num_masks, num_tokens)
    steps = explain_in_steps(
        translator,
        pair.source,
        pair.translation,
        num_masks=num_masks,
        seed=seed,
        block_size=max(16, STEP_TOKENS // num_tokens),
    )
    return steps, next(steps)


def _runs_of(request: WebRequest) -> list[Run]:
    """List the training runs that may be watched: the named ones, else those of the models.

    Logs have sentences of the training data in them: unnamed ones are for this machine only, and
    behind a proxy, where requests may come from anywhere, for those who have a key.
    """
    named: WatchedRuns | None = getattr(request.app.state, "runs", None)
    if named is not None:
        return named.list_runs()
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None or not is_loopback(service.options.host):
        return []
    is_proxied = service.options.proxy is not None or is_forwarded(request.scope)
    if is_proxied and not request.app.state.keys.is_required:
        return []
    paths = dict.fromkeys(each.translator.folder.path.resolve() for each in service.models())
    runs = [Run(number, *each) for number, each in enumerate(name_runs(list(paths)).items())]
    return [run for run in runs if (run.path / METRICS_FILE).exists()]


def _write_runs(request: WebRequest) -> list[dict[str, Any]]:
    return [{"number": run.number, "name": run.name} for run in _runs_of(request)]


async def _list_runs(request: WebRequest) -> Response:
    await _identify_watcher(request)
    return JSONResponse({"runs": _write_runs(request)})


async def _identify_watcher(request: WebRequest) -> None:
    """Ask for the key, if the server wants one."""
    if getattr(request.app.state, "service", None) is not None:
        await identify(request)


async def _find_run(request: WebRequest) -> Run:
    """Find the run that a request names by its number."""
    for run in _runs_of(request):
        if str(run.number) == request.path_params["number"]:
            await _identify_watcher(request)
            return run
    raise ServiceError("not_found", "there is no such run")


async def _run(request: WebRequest) -> Response:
    run = await _find_run(request)
    query = request.query_params
    try:
        offset = int(query.get("offset", "0"))
    except ValueError:
        offset = -1
    if not 0 <= offset < 1 << 53:
        raise ServiceError("bad_request", "“offset” must be a whole number")
    return _write_ascii(read_run(run.path, offset, query.get("token", "")))


async def _run_facts(request: WebRequest) -> Response:
    return _write_ascii(read_run_facts((await _find_run(request)).path))


async def _list_stages(request: WebRequest) -> Response:
    stages = list_stages((await _find_run(request)).path)
    return JSONResponse(
        {"stages": [{"name": name, "step": step} for name, (step, _) in stages.items()]}
    )


async def _look_at_stage(request: WebRequest) -> Response:
    """Translate a sentence with the weights that a run had after some update."""
    run, fields = await _find_run(request), await read_fields(request)
    name = fields.text("stage")
    await charge(request, len(fields.text("text")))
    _, weights = list_stages(run.path).get(name, (0, None))
    if weights is None:
        raise ServiceError("not_found", f"the run has not kept “{name}”, or not for so long")
    key = (run.path, name, _date(weights))
    return await _look_beside(request, key, run.path, weights, fields)


def _broken_of(request: WebRequest) -> BrokenModels | None:
    found: BrokenModels | None = getattr(request.app.state, "broken", None)
    return found


async def _look_at_broken(request: WebRequest) -> Response:
    """Translate a sentence with a model that lacks a part."""
    broken, fields = _broken_of(request), await read_fields(request)
    name = fields.text("model")
    await charge(request, len(fields.text("text")))
    path = None if broken is None else broken.find(name)
    if path is None:
        raise ServiceError("not_found", f"no broken model is called “{name}”")
    return await _look_beside(request, path, path, path / WEIGHTS_FILE, fields)


async def _look_beside(
    request: WebRequest, key: object, folder: Path, weights: Path, fields: JsonFields
) -> Response:
    text, say = fields.text("text"), fields.text("say", "")
    if not text.strip():
        raise ServiceError("bad_request", "“text” is empty; give a sentence")
    beside: SideModels = request.app.state.side_models
    found = await beside.run(
        key,
        lambda: load_weights(folder, weights),
        lambda translator: translate_and_look(translator, text, say),
    )
    return JSONResponse(found)


def _date(path: Path) -> int:
    """Return when a file was written; 0: it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _write_ascii(found: dict[str, Any]) -> Response:
    """Write JSON as ASCII, since files may contain lone surrogates, which UTF-8 cannot encode."""
    return Response(json.dumps(found, allow_nan=False), media_type="application/json")


def give_index(request: WebRequest) -> Response:
    """Serve the page."""
    return _give(request, "index.html")


def give_asset(request: WebRequest) -> Response:
    """Serve a static file of the page."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("there is no such file", status_code=404, media_type="text/plain")
    return _give(request, name)


def _give(request: WebRequest, name: str) -> Response:
    asset = read_asset(name)
    headers = _HEADERS | {"ETag": asset.tag}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    content = asset.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = asset.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type=asset.media_type)


def split_parts(pieces: Iterable[str]) -> list[TextPart]:
    """Split pieces of text into sentences and the white space after them."""
    parts: list[TextPart] = []
    for piece in pieces:
        core = piece.strip()
        begin = piece.index(core) if core else len(piece)
        before, after = piece[:begin], piece[begin + len(core) :]
        if before and parts:
            parts[-1] = parts[-1]._replace(space=parts[-1].space + before)
        elif before:
            parts.append(TextPart("", before))
        if core:
            parts.append(TextPart(core, after))
    return parts
