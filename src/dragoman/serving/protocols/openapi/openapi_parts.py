"""Builders of OpenAPI schemas and operations."""

from collections.abc import Iterable
from typing import Any

from dragoman.serving.documents.pdf.pdf_documents import PDF_OUTPUTS

Schema = dict[str, Any]

LIMIT_STATUSES = (400, 408, 413, 421, 429, 500, 503)
"""Of requests that are refused before a protocol reads them."""
FILE: Schema = {
    "200": {
        "description": "The file; what a PDF has become says what it is",
        "content": {each: {} for each in ("application/octet-stream", *PDF_OUTPUTS.values())},
    }
}
OUTPUT_FORMAT: Schema = {
    "output_format": {"type": "string", "enum": [each[1:] for each in PDF_OUTPUTS]}
}
"""What a PDF may become; every other file stays of its kind."""


def text(
    description: str = "", *, enum: list[Any] | None = None, min_length: int | None = None
) -> Schema:
    """Describe a string."""
    schema: Schema = {"type": "string"}
    if description:
        schema["description"] = description
    if enum is not None:
        schema["enum"] = list(dict.fromkeys(enum))
    if min_length is not None:
        schema["minLength"] = min_length
    return schema


def array(item: Schema, *, min_items: int | None = None) -> Schema:
    """Describe an array."""
    schema: Schema = {"type": "array", "items": item}
    return schema if min_items is None else {**schema, "minItems": min_items}


def properties(described: Schema, required: list[str]) -> Schema:
    """Describe an object."""
    schema: Schema = {"type": "object", "properties": described}
    return {**schema, "required": required} if required else schema


def answer(schema: Schema, status: int = 200) -> Schema:
    """Describe a JSON response."""
    content = {"application/json": {"schema": schema}}
    return {str(status): {"description": "The answer", "content": content}}


def error_of(schema: Schema, statuses: Iterable[int]) -> Schema:
    """Describe the responses of a protocol's statuses, and of those before the protocols."""
    content = {"application/json": {"schema": schema}}
    described = {"description": "What is wrong", "content": content}
    return {str(status): described for status in sorted({*statuses, *LIMIT_STATUSES})}


def body(
    schema: Schema | None, *, form: Schema | bool = False, multipart: Schema | None = None
) -> Schema:
    """Describe a request body."""
    content: Schema = {}
    if schema is not None:
        content["application/json"] = {"schema": schema}
    if form:
        said = schema if isinstance(form, bool) else form
        content["application/x-www-form-urlencoded"] = {"schema": said}
    if multipart is not None:
        content["multipart/form-data"] = {"schema": multipart}
    return {"required": True, "content": content}


def query(name: str, schema: Schema, *, is_required: bool = False) -> Schema:
    """Describe a query parameter."""
    return {"name": name, "in": "query", "required": is_required, "schema": schema}


def one_or_many(schema: Schema) -> Schema:
    """Describe a value or a list of such."""
    return {"oneOf": [schema, array(schema, min_items=1)]}


def in_path(name: str) -> Schema:
    """Describe a parameter in the path."""
    return {**query(name, text(), is_required=True), "in": "path"}


def operation(
    tag: str,
    summary: str,
    *answers: Schema,
    request: Schema | None = None,
    queries: list[Schema] | None = None,
) -> Schema:
    """Describe an operation."""
    described: Schema = {
        "tags": [tag],
        "summary": summary,
        "responses": {status: each for some in answers for status, each in some.items()},
    }
    if request is not None:
        described["requestBody"] = request
    if queries:
        described["parameters"] = queries
    return described


KEY = text("API key, where the server wants one")
