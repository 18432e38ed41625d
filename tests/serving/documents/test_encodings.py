import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.documents.encodings import decode_text
from dragoman.serving.service_types import ServiceError

TEXTS = {
    "windows-1252": [
        "Der Müller grüßt schön.",
        "Les élèves étaient déjà là, c’est très bon.",
        "El niño está aquí: ¡mañana más!",
        "A ação começou no coração de São Paulo.",
        "Più però così è già città.",
        "Blåbær på øen.",
        "It’s “fine”.",
        "café",
    ],
    "windows-1250": [
        "Zażółć gęślą jaźń, proszę.",
        "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        "Árvíztűrő tükörfúrógép, őrült.",
        "Să mâncăm şi să învăţăm împreună.",
        "Čovječe, što žele ići kući?",
    ],
    "windows-1251": ["Привет, мир! Это тест.", "Він їде до Києва."],
    "koi8-r": ["Привет, мир! Это простой тест."],
    "windows-1253": ["Καλημέρα κόσμε, τι κάνεις;"],
    "windows-1254": ["Günaydın dünya, nasılsın? Şimdi iyi değil."],
    "windows-1255": ["שלום עולם, מה שלומך היום"],
    "windows-1256": ["مرحبا بالعالم كيف حالك اليوم"],
    "windows-1257": ["Labas rytas, kaip tau sekasi šiandien? Ąžuolas čia, gėlė."],
    "utf-16-le": ["One two.", "Привет, мир!"],
    "utf-16-be": ["One two."],
    "utf-8": ["One two.", "Grüße", "今天天气很好。"],
}


@pytest.mark.parametrize(
    ("encoding", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts]
)
def test_the_encoding_is_found_and_kept(encoding, text):
    decoded = decode_text(text.encode(encoding))
    assert (decoded.text, decoded.encoding) == (text, encoding)
    assert decoded.encode(text) == text.encode(encoding)


@settings(max_examples=40)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")))
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_utf8_is_never_taken_for_anything_else(text, mark):
    decoded = decode_text(mark + text.encode())
    assert (decoded.text, decoded.encoding) == (text, "utf-8")
    assert decoded.encode(text) == mark + text.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"\xff\xfe\x00",
            "the file is not UTF-16-LE throughout: byte 3 is wrong; save it as UTF-8",
        ),
        ("Grüße über".encode() + b" \xe9", "not UTF-8 throughout: byte 15 is wrong; save it as"),
        ("日本語のテキストです。".encode("shift_jis"), "the file is not UTF-8; save it as UTF-8"),
        ("ñøßšž".encode("windows-1252"), "is not UTF-8 but, perhaps, windows-1250; save it as UTF"),
        (b"\x81\x8d\x90\xff\xae", "save it as UTF-8"),
        (b"a\0b", "has a NUL character, so it is no text"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_guess(content, message):
    with pytest.raises(ServiceError, match=message) as caught:
        decode_text(content)
    assert caught.value.kind == "bad_request"


def test_what_an_encoding_lacks_is_said():
    decoded = decode_text("Grüße".encode("windows-1252"))
    with pytest.raises(ServiceError, match="the file is windows-1252, which lacks “ł” of the tr"):
        decoded.encode("był")
    page = decode_text("Grüße".encode("windows-1252"), is_markup=True)
    assert page.encode("był") == b"by&#322;"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="iso-8859-2">', "iso8859-2"),
        ("<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'>", "windows-1252"),
        ('<?xml version="1.0" encoding="ISO-8859-15"?>', "iso8859-15"),
        ('<meta charset="rot13">', "windows-1252"),
        ('<meta charset="utf-8">', "windows-1252"),
    ],
)
def test_pages_declare_their_encoding(head, encoding):
    content = head.encode() + "élève".encode("windows-1252")
    assert decode_text(content, is_markup=True).encoding == encoding
    assert decode_text(content).encoding == "windows-1252"
    assert decode_text(f"{head}é".encode(), is_markup=True).encoding == "utf-8"


def test_time_is_linear():
    assert grows_linearly(lambda size: decode_text("é".encode("latin-1") * size), 3000)
    assert grows_linearly(lambda size: decode_text(b"<meta " * size, is_markup=True), 3000)
