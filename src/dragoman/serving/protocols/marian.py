"""The protocol of marian-server: lines of text over a WebSocket."""

from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from dragoman.serving.languages import match_language
from dragoman.serving.protocols.plain_errors import PLAIN_STATUS
from dragoman.serving.protocols.request_parameters import (
    check_text,
    find_client,
    read_bearer,
    translate_and_charge,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, ErrorKind, Request, ServiceError

# Codes with which a connection is closed (RFC 6455).
_NO_TEXT, _REFUSED, _TOO_BIG, _FAILED, _LATER = 1003, 1008, 1009, 1011, 1013
CODES: dict[ErrorKind, int] = {
    "bad_request": _REFUSED,
    "unknown_language": _REFUSED,
    "too_long": _TOO_BIG,
    "too_many_texts": _TOO_BIG,
    "missing_key": _REFUSED,
    "bad_key": _REFUSED,
    "forbidden": _REFUSED,
    "quota": _REFUSED,
    "not_found": _REFUSED,
    "too_many_requests": _LATER,
    "overloaded": _LATER,
    "not_ready": _LATER,
    "cancelled": _LATER,
    "failed": _FAILED,
}
# Of handshakes; clients without a key are told as those with a wrong one.
_STATUS: dict[ErrorKind, int] = {
    **PLAIN_STATUS,
    "missing_key": 403,
    "bad_key": 403,
    "unknown_language": 404,
}
LONGEST_REASON = 123
"""Bytes that a closing frame has room for."""
MOST_SHOWN = 20

_Pair = tuple[str | None, str]


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        WebSocketRoute("/translate", _converse),
        WebSocketRoute("/translate/{source}/{target}", _converse),
    ]


async def _converse(socket: WebSocket) -> None:
    """Answer each message with as many lines as it has."""
    try:
        key = read_bearer(socket, "Bearer") or socket.query_params.get("api_key")
        client = await find_client(socket, key)
        pair = _find_pair(socket)
    except ServiceError as error:
        status = _STATUS[error.kind]
        await socket.send_denial_response(JSONResponse({"error": error.message}, status))
        return
    await socket.accept()
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("text") is None:
            await _close(socket, _NO_TEXT, "the message is not text; send lines of text")
            return
        try:
            translated = await _translate(socket, message, client, pair)
        except ServiceError as error:
            await _close(socket, CODES[error.kind], error.message)
            return
        await socket.send_text(translated)


async def _translate(socket: WebSocket, message: Message, client: Client, pair: _Pair) -> str:
    """Translate the lines of a message, each by itself."""
    text: str = message["text"]
    check_text(text)
    end = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    wanted = Request(texts=tuple(lines), source=pair[0], target=pair[1], client=client)
    answers = await translate_and_charge(socket, wanted)
    # A model may write a line break, but lines are counted here.
    return "\n".join(each.text.replace("\n", " ") for each in answers) + end


async def _close(socket: WebSocket, code: int, message: str) -> None:
    """Close the connection with a reason, as much as there is room for."""
    reason = message.encode()[:LONGEST_REASON].decode("utf-8", "ignore")
    await socket.close(code, reason)


def _find_pair(socket: WebSocket) -> _Pair:
    """Find the languages in the address, or those of the only pair."""
    service: Service = socket.app.state.service
    pairs = list(dict.fromkeys((each.source, each.target) for each in service.models()))
    if "source" not in socket.path_params:
        if len(pairs) == 1:
            return pairs[0]
        shown = ", ".join(f"/translate/{'/'.join(pair)}" for pair in pairs[:MOST_SHOWN])
        raise ServiceError(
            "not_found", f"this server translates several pairs; ask for one of {shown}"
        )
    codes = [each.code for each in service.languages()]
    source, target = (
        None if name == "source" and code.lower() == "auto" else _match(code, codes)
        for name, code in ((name, socket.path_params[name]) for name in ("source", "target"))
    )
    assert target is not None
    by_code = {each.code: each.targets for each in service.languages()}
    if source is not None and target not in by_code[source]:
        raise ServiceError("unknown_language", f"no model translates {source} to {target}")
    return source, target


def _match(code: str, codes: list[str]) -> str:
    found = match_language(code, codes)
    if found is None:
        raise ServiceError("unknown_language", f"{code[:80]} is not supported")
    return found
