"""The path ``/translate`` of several protocols: the form of a request says which it is."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request as WebRequest
from starlette.responses import Response
from starlette.routing import BaseRoute

from dragoman.serving.protocols.deeplx import translate_deeplx, write_deeplx_error
from dragoman.serving.protocols.immersive import translate_immersive, write_immersive_error
from dragoman.serving.protocols.libretranslate import (
    translate_libretranslate,
    write_libretranslate_error,
)
from dragoman.serving.protocols.microsoft import translate_microsoft, write_microsoft_error
from dragoman.serving.protocols.microsoft_inputs import (
    translate_microsoft_inputs,
    write_microsoft_inputs_error,
)
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    make_route,
    read_parameters,
    write_refusal,
)
from dragoman.serving.service_types import ServiceError

_Form = tuple[
    Callable[[WebRequest, RequestParameters], Awaitable[Response]],
    Callable[[ServiceError], Response],
]


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [make_route("/translate", _translate, ["POST"], write_libretranslate_error)]


async def _translate(request: WebRequest) -> Response:
    """Translate in the protocol of the request's form."""
    parameters = await read_parameters(request, takes_list=True)
    translate, write_error = _find_form(parameters)
    try:
        return await translate(request, parameters)
    except ServiceError as error:
        return write_refusal(error, write_error)


def _find_form(parameters: RequestParameters) -> _Form:
    """Find the protocol: by a list, or by the name of the field that has the texts."""
    if parameters.items is not None:
        return translate_microsoft, write_microsoft_error
    if "q" not in parameters.values and "inputs" in parameters.values:
        return translate_microsoft_inputs, write_microsoft_inputs_error
    if "q" not in parameters.values and "text_list" in parameters.values:
        return translate_immersive, write_immersive_error
    if "q" not in parameters.values and "text" in parameters.values:
        return translate_deeplx, write_deeplx_error
    return translate_libretranslate, write_libretranslate_error
