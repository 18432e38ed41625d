"""Parts of an OpenAPI description."""

from typing import Any

Schema = dict[str, Any]


def text(
    description: str = "", *, enum: list[Any] | None = None, min_length: int | None = None
) -> Schema:
    """Describe a text.

    Parameters
    ----------
    description : str
        What it is.
    enum : list[Any] | None
        All that it can be; None: anything.
    min_length : int | None
        Its least number of characters.

    Returns
    -------
    Schema
        The schema.
    """
    schema: Schema = {"type": "string"}
    if description:
        schema["description"] = description
    if enum is not None:
        schema["enum"] = list(dict.fromkeys(enum))
    if min_length is not None:
        schema["minLength"] = min_length
    return schema


def array(item: Schema, *, min_items: int | None = None) -> Schema:
    """Describe a list.

    Parameters
    ----------
    item : Schema
        What is in it.
    min_items : int | None
        How many at least.

    Returns
    -------
    Schema
        The schema.
    """
    schema: Schema = {"type": "array", "items": item}
    return schema if min_items is None else {**schema, "minItems": min_items}


def properties(described: Schema, required: list[str]) -> Schema:
    """Describe an object.

    Parameters
    ----------
    described : Schema
        What it has.
    required : list[str]
        What of that it always has.

    Returns
    -------
    Schema
        The schema.
    """
    schema: Schema = {"type": "object", "properties": described}
    return {**schema, "required": required} if required else schema


def answer(schema: Schema, status: int = 200) -> Schema:
    """Describe an answer of JSON.

    Parameters
    ----------
    schema : Schema
        What it says.
    status : int
        With which status.

    Returns
    -------
    Schema
        For the answers of an operation.
    """
    content = {"application/json": {"schema": schema}}
    return {str(status): {"description": "The answer", "content": content}}


def error_of(schema: Schema) -> Schema:
    """Describe what a client is told in place of an answer, whatever the status.

    Parameters
    ----------
    schema : Schema
        What it says.

    Returns
    -------
    Schema
        For the answers of an operation.
    """
    content = {"application/json": {"schema": schema}}
    return {"default": {"description": "What is wrong", "content": content}}


def body(
    schema: Schema | None, *, form: Schema | bool = False, multipart: Schema | None = None
) -> Schema:
    """Describe what is sent.

    Parameters
    ----------
    schema : Schema | None
        As JSON; None: it cannot be sent so.
    form : Schema | bool
        As a form: the same, or something else.
    multipart : Schema | None
        As a form with a file.

    Returns
    -------
    Schema
        For an operation.
    """
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
    """Describe a parameter behind the address.

    Parameters
    ----------
    name : str
        Its name.
    schema : Schema
        What it is.
    is_required : bool
        Whether it must be there.

    Returns
    -------
    Schema
        For an operation.
    """
    return {"name": name, "in": "query", "required": is_required, "schema": schema}


def operation(
    tag: str,
    summary: str,
    *answers: Schema,
    request: Schema | None = None,
    queries: list[Schema] | None = None,
) -> Schema:
    """Describe what happens for a method of a path.

    Parameters
    ----------
    tag : str
        The protocol.
    summary : str
        One line.
    *answers : Schema
        From `answer` and `error_of`.
    request : Schema | None
        From `body`; None: nothing is sent.
    queries : list[Schema] | None
        From `query`, or parameters in the path.

    Returns
    -------
    Schema
        The description.
    """
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
