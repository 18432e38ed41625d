"""Statuses of protocols that have no table of their own."""

from dragoman.serving.service_types import ErrorKind

PLAIN_STATUS: dict[ErrorKind, int] = {
    "bad_request": 400,
    "unknown_language": 400,
    "too_long": 413,
    "too_many_texts": 413,
    "missing_key": 401,
    "bad_key": 401,
    "forbidden": 403,
    "quota": 403,
    "not_found": 404,
    "too_many_requests": 429,
    "overloaded": 429,
    "not_ready": 503,
    "cancelled": 503,
    "failed": 500,
}
