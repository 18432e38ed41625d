import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.documents.word_fields import FIELD, join_fields
from dragoman.serving.markup.markup_tokens import split_xml

BEGIN, SEPARATE, END = (
    f'<w:r><w:rPr><w:b/></w:rPr><w:fldChar w:fldCharType="{kind}"/></w:r>'
    for kind in ("begin", "separate", "end")
)
CODE = "<w:r><w:instrText>REF a</w:instrText></w:r>"
TEXT = "<w:r><w:t>text</w:t></w:r>"


def join(xml):
    return join_fields(list(split_xml(xml)))


def show(xml):
    """Show fields as brackets, texts as “t”, and other joined tokens as “o”."""
    marks = {"start": "[", "end": "]"}
    return "".join(
        marks[each.kind] if each.name == FIELD else {"text": "t", "other": "o"}.get(each.kind, "")
        for each in join(xml)
    )


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (f"{TEXT}{BEGIN}{CODE}{SEPARATE}{TEXT}{END}{TEXT}", "t[t]t"),
        (f"{BEGIN}{CODE}{CODE}{SEPARATE}{TEXT}{TEXT}{END}", "[tt]"),
        (f"{TEXT}{BEGIN}{CODE}{END}{TEXT}", "tot"),
        (f"{BEGIN}{CODE}{BEGIN}{CODE}{SEPARATE}{TEXT}{END}{CODE}{SEPARATE}{TEXT}{END}", "[t]"),
        (f"{BEGIN}{CODE}{SEPARATE}{TEXT}{BEGIN}{CODE}{SEPARATE}{TEXT}{END}{END}", "[t[t]]"),
        (f"{BEGIN}{CODE}{SEPARATE}<w:hyperlink>{TEXT}{END}</w:hyperlink>", "oto"),
        (f"{BEGIN}{CODE}{SEPARATE}{TEXT}", "ot"),
        (f"{TEXT}{SEPARATE}{END}", "too"),
        (f"<w:r>{BEGIN[5:-6]}<w:t>text</w:t></w:r>", "t"),
    ],
)
def test_what_belongs_together_is_joined(body, shown):
    assert show(f"<w:p>{body}</w:p>") == shown


def test_a_field_over_paragraphs_is_left():
    xml = f"<w:p>{BEGIN}{CODE}{SEPARATE}{TEXT}</w:p><w:p>{TEXT}{END}</w:p>"
    assert show(xml) == "otto"


PIECES = [BEGIN, SEPARATE, END, CODE, TEXT, "<w:x>", "</w:x>", "<w:p>", "</w:p>"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_joined_tokens_are_the_input_and_fields_are_balanced(xml):
    tokens = join(xml)
    assert "".join(each.raw for each in tokens) == xml
    depth = 0
    for each in tokens:
        depth += (each.name == FIELD) * ((each.kind == "start") - (each.kind == "end"))
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize("piece", [BEGIN, BEGIN + SEPARATE, CODE, "<w:r><w:rPr>"])
def test_time_is_linear(piece):
    assert grows_linearly(lambda size: join(piece * size), 500)
