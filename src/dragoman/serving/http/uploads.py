"""Upload check: reject a file before reading it if its key is invalid or out of quota."""

import re
import urllib.parse
from collections.abc import Sequence

from starlette.types import Scope

from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.service_types import ServiceError

BEGINNING = 4096
"""Bytes of a form in which its key is looked for; most clients send files last."""

# For each path: authorization scheme, form field of the key, status of an exhausted quota.
_WAYS = {
    "/translate_file": ("bearer", "api_key", 403),
    "/v2/document": ("deepl-auth-key", "auth_key", 456),
}
_STATUS = {"bad_key": 403, "too_many_requests": 429, "not_ready": 503}
_FIELD = rb'; ?name="?%s"?\r\n(?:[^\r\n]{1,200}\r\n){0,4}\r\n([^\r\n]{1,1000})\r\n'
_FIELDS = {
    path: re.compile(_FIELD % field.encode(), re.IGNORECASE)
    for path, (_, field, _) in _WAYS.items()
}


class UploadCheck:
    """Checks the key of an upload from its head or its first bytes.

    Parameters
    ----------
    keys : ApiKeys
        Who may ask, and for how much.
    scope : Scope
        The request, to one of the paths that take files.

    Notes
    -----
    Nothing is charged here: that is for whoever reads the file.
    """

    def __init__(self, keys: ApiKeys, scope: Scope) -> None:
        self._keys = keys
        self._path: str = scope["path"]
        self._address: str = (scope.get("client") or ("", 0))[0]
        self._key = _find_key(scope, self._path)
        self._is_over = False

    async def find_refusal(self, chunks: Sequence[bytes] = ()) -> tuple[int, ServiceError] | None:
        """Return the error if the upload is to be rejected.

        Returns
        -------
        tuple[int, ServiceError] | None
            The status and what to say; None: there is no reason, or none is known yet.
        """
        if self._is_over:
            return None
        key = self._key
        if key is None and self._keys.is_required:
            begin = b"".join(chunks)[:BEGINNING]
            found = _FIELDS[self._path].search(begin)
            if found is None:
                self._is_over = len(begin) >= BEGINNING
                return None
            key = found[1].decode("utf-8", "replace")
        self._is_over = True
        try:
            await self._keys.check(await self._keys.authenticate(key, self._address))
        except ServiceError as error:
            return _STATUS.get(error.kind, _WAYS[self._path][2]), error
        return None


def _find_key(scope: Scope, path: str) -> str | None:
    """Find the key in the headers or the query string."""
    scheme, field, _ = _WAYS[path]
    header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    word, _, key = header.strip().partition(" ")
    if word.lower() == scheme and key.strip():
        return key.strip()
    query = scope.get("query_string", b"").decode("latin-1")
    return urllib.parse.parse_qs(query).get(field, [None])[0] if field in query else None
