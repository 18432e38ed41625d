"""Builders of OpenAPI schemas and operations."""

from typing import Any

Schema = dict[str, Any]


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


def error_of(schema: Schema) -> Schema:
    """Describe the default error response."""
    content = {"application/json": {"schema": schema}}
    return {"default": {"description": "What is wrong", "content": content}}


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
