import hashlib

from dragoman.serving.state.client_names import name_in_state


def test_owners_of_keys_are_named_and_addresses_are_not():
    assert name_in_state("key alice") == "key alice"
    digest = hashlib.sha256(b"192.0.2.7").hexdigest()[:32]
    assert name_in_state("192.0.2.7") == f"address {digest}"
    assert "key" not in name_in_state("address key alice")
    assert name_in_state("address \ud800") != name_in_state("address \ud801")
