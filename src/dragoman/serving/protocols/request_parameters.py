"""Request parameters from JSON, forms or the query string, strictly validated."""

import json
import math
import re
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.requests import HTTPConnection
from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import Route

from dragoman.serving.service_types import Answer, Client, Request, ServiceError

MOST_FIELDS = 5000
"""Fields of a form; a text that comes many times is many fields."""

_NUMBERED = re.compile(r"(\w{1,40})\[([0-9]{1,4})\][.](\w{1,40})")
_TRUE = ("1", "true")
_FALSE = ("0", "false")

Handler = Callable[[WebRequest], Awaitable[Response]]


@dataclass(frozen=True)
class UploadedFile:
    """An uploaded file.

    Parameters
    ----------
    name : str
        Its name.
    content : bytes
        Its content.
    """

    name: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class RequestParameters:
    """The parameters of a request.

    Parameters
    ----------
    values : Mapping[str, list[object]]
        All values of each; what is not in a list is one.
    lists : frozenset[str]
        Names of those that came as a list.
    is_json : bool
        Whether they came as JSON.
    file : UploadedFile | None
        A file that came with them.
    items : Sequence[object] | None
        The body, where it was a list of JSON; None: it was not.
    """

    values: Mapping[str, list[object]]
    lists: frozenset[str] = frozenset()
    is_json: bool = False
    file: UploadedFile | None = None
    items: Sequence[object] | None = None

    def text(self, name: str) -> str | None:
        """Return a single string; None: absent."""
        texts = self.texts(name)
        if len(texts) > 1 or (name in self.lists and texts):
            raise _bad_request(name, "must be one text, not a list")
        return texts[0] if texts else None

    def texts(self, name: str) -> list[str]:
        """Return a list of strings."""
        values = self.values.get(name, [])
        if any(not isinstance(each, str) for each in values):
            raise _bad_request(name, "must be text")
        return [str(each) for each in values]

    def words(self, name: str) -> frozenset[str]:
        """Return names given as a list or separated by commas."""
        parts = (part.strip() for text in self.texts(name) for part in text.split(","))
        return frozenset(part for part in parts if part)

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        values = self.values.get(name, [])
        if not values:
            return default
        said = str(values[0]).lower()
        if len(values) > 1 or name in self.lists or said not in (*_TRUE, *_FALSE):
            raise _bad_request(name, "must be true or false")
        return said in _TRUE

    def objects(self, name: str) -> list["RequestParameters"]:
        """Return the parameters in each of a list of JSON objects, or of numbered form fields.

        Notes
        -----
        A form has ``name[0].field`` for what JSON has as a field of the first object.
        """
        values = self.values.get(name, [])
        if not values:
            return self._numbered_objects(name)
        if any(not isinstance(each, dict) for each in values):
            raise _bad_request(name, "must be objects of JSON")
        return [from_json(each) for each in values if isinstance(each, dict)]

    def _numbered_objects(self, name: str) -> list["RequestParameters"]:
        found: dict[int, dict[str, list[object]]] = {}
        for key, values in self.values.items():
            match = _NUMBERED.fullmatch(key)
            if match is not None and match[1] == name:
                found.setdefault(int(match[2]), {})[match[3]] = values
        return [RequestParameters(values=found[number]) for number in sorted(found)]

    def number(self, name: str, default: int) -> int:
        """Return an integer."""
        values = self.values.get(name, [])
        if not values:
            return default
        said = str(values[0]).strip()
        digits = said.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) < 10
        if len(values) > 1 or name in self.lists or not is_number:
            raise _bad_request(name, "must be a whole number")
        return int(said)


async def read_parameters(request: WebRequest, *, takes_list: bool = False) -> RequestParameters:
    """Parse the parameters of a request.

    Parameters
    ----------
    request : WebRequest
        The request; also one that by its method should have no body may have one.
    takes_list : bool
        Whether the body may be a list of JSON in place of an object.

    Notes
    -----
    What is not UTF-8, has a NUL or half a surrogate pair is refused: no model could read it.
    """
    values = _read_form(request.scope.get("query_string", b""))
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _read_multipart(request, values)
    body = await request.body()
    if not body:
        return RequestParameters(values=values)
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        found = _read_json(body)
        if takes_list and isinstance(found, list):
            return RequestParameters(values=values, is_json=True, items=found)
        if not isinstance(found, dict):
            raise ServiceError("bad_request", "Invalid request: the body must be an object of JSON")
        sent = from_json(found)
        return replace(sent, values={**values, **sent.values})
    if kind == "application/x-www-form-urlencoded":
        return RequestParameters(values={**values, **_read_form(body)})
    raise ServiceError(
        "bad_request",
        "Invalid request: the body is neither JSON nor a form; say which in Content-Type",
    )


async def find_client(request: HTTPConnection, key: str | None) -> Client:
    """Authenticate the client of a request."""
    address = request.client.host if request.client is not None else ""
    client: Client = await request.app.state.keys.authenticate(key, address)
    return client


async def translate_and_charge(web_request: HTTPConnection, request: Request) -> list[Answer]:
    """Translate and charge the client; refund if translation fails."""
    keys, service = web_request.app.state.keys, web_request.app.state.service
    num_characters = sum(len(text) for text in request.texts)
    await keys.charge(request.client, num_characters)
    is_answered = False
    try:
        answers: list[Answer] = await service.translate(request)
        is_answered = True
    finally:
        if not is_answered:
            keys.refund(request.client, num_characters)
    return answers


def read_bearer(request: HTTPConnection, scheme: str) -> str | None:
    """Read the key from the Authorization header."""
    word, _, key = request.headers.get("authorization", "").strip().partition(" ")
    return key.strip() or None if word.lower() == scheme.lower() else None


def make_route(
    path: str, handler: Handler, methods: list[str], refuse: Callable[[ServiceError], Response]
) -> Route:
    """Make a route that writes errors in the format of its protocol."""

    async def answer(request: WebRequest) -> Response:
        try:
            return await handler(request)
        except ServiceError as error:
            return write_refusal(error, refuse)

    return Route(path, answer, methods=methods)


def write_refusal(error: ServiceError, refuse: Callable[[ServiceError], Response]) -> Response:
    """Write an error in the format of a protocol, and when to come back."""
    response = refuse(error)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return response


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _read_json(body: bytes) -> object:
    try:
        sent = json.loads(body.decode())
    except UnicodeDecodeError:
        raise _not_text("the body is not UTF-8") from None
    except (ValueError, RecursionError):
        raise ServiceError("bad_request", "Invalid request: the body is no JSON") from None
    _check_texts(sent)
    return sent


def from_json(sent: Mapping[str, object]) -> RequestParameters:
    """Take the fields of an object of JSON as parameters."""
    return RequestParameters(
        values={name: _as_list(value) for name, value in sent.items() if value is not None},
        lists=frozenset(name for name, value in sent.items() if isinstance(value, list)),
        is_json=True,
    )


def _read_form(body: bytes) -> dict[str, list[object]]:
    try:
        pairs = urllib.parse.parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except UnicodeDecodeError:
        raise _not_text("the form is not UTF-8") from None
    except ValueError:
        raise ServiceError("bad_request", "Invalid request: the form has too many fields") from None
    values: dict[str, list[object]] = {}
    for name, value in pairs:
        check_text(value)
        values.setdefault(name, []).append(value)
    return values


async def _read_multipart(
    request: WebRequest, values: dict[str, list[object]]
) -> RequestParameters:
    """Parse a multipart form, with at most one file."""
    _check_charset(request)
    most = request.app.state.service.options.max_body_bytes
    body = await request.body()
    file = None
    found: dict[str, list[object]] = {}
    async with request.form(max_files=1, max_fields=100, max_part_size=most) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                file = UploadedFile(value.filename or "", await value.read())
                check_text(file.name)
            else:
                check_text(value)
                # Starlette silently decodes invalid UTF-8 as Latin 1.
                if not value.isascii() and value.encode() not in body:
                    raise _not_text("the form is not UTF-8")
                found.setdefault(name, []).append(value)
    return RequestParameters(values={**values, **found}, file=file)


def _check_charset(request: WebRequest) -> None:
    """Refuse forms that are not UTF-8."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        raise _not_text("the form is not UTF-8")


def _check_texts(sent: object) -> None:
    """Check all strings in a value of JSON, however deep they are."""
    rest = [sent]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            check_text(each)
        elif isinstance(each, list):
            rest += each
        elif isinstance(each, dict):
            rest += each.values()


def check_text(text: str) -> None:
    """Raise if a text has characters that no model could read."""
    if "\0" in text:
        raise _not_text("the text has a NUL character; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_text("the text has half a surrogate pair, which is no character") from None


def _not_text(message: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {message}")


def _bad_request(name: str, message: str) -> ServiceError:
    return ServiceError(
        "bad_request", f"Invalid request: {name} {message}", details={"parameter": name}
    )
