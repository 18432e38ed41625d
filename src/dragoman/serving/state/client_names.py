"""Names of clients as they are written to the state."""

import hashlib

KEY_PREFIX = "key "
"""With which the names of clients begin that have a key."""


def name_in_state(name: str) -> str:
    """Keep the name of a key's owner, and write the digest of an address in its place."""
    if name.startswith(KEY_PREFIX):
        return name
    return f"address {hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
