import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents.documents import read_document
from dragoman.serving.service_types import ServiceError


def read(text, target="fr"):
    return read_document("a.po", text.encode(), 10_000_000, target)


PO = r"""# A catalogue.
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Language: \n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

#: a.c:1
msgid "Open %s"
msgstr ""

#. for the menu
#: b.c:2
#, c-format
#| msgid "old"
msgctxt "menu"
msgid ""
"One line\n"
"and \"two\" \\ lines.\n"
msgstr ""

msgid "Done"
msgstr ""
"Fer"
"tig"

#, fuzzy
msgid "Half"
msgstr "Halb"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Empty"
msgstr ""

#~ msgid "gone"
#~ msgstr ""
"""
TRANSLATED = r"""# A catalogue.
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Language: fr\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

#: a.c:1
#, fuzzy
msgid "Open %s"
msgstr "OPEN %s"

#. for the menu
#: b.c:2
#, fuzzy, c-format
#| msgid "old"
msgctxt "menu"
msgid ""
"One line\n"
"and \"two\" \\ lines.\n"
msgstr ""
"ONE LINE\n"
"AND \"TWO\" \\ LINES.\n"

msgid "Done"
msgstr ""
"Fer"
"tig"

#, fuzzy
msgid "Half"
msgstr "Halb"

#, fuzzy
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d FILE"
msgstr[1] "%d FILES"

#, fuzzy
msgid "Empty"
msgstr "EMPTY"

#~ msgid "gone"
#~ msgstr ""
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_not_translated_yet_is_and_is_fuzzy(end):
    assert translate(read(PO.replace("\n", end))).decode() == TRANSLATED.replace("\n", end)


def test_a_translated_catalogue_stays_as_it_is():
    assert read(TRANSLATED).texts == []
    assert keep(read(TRANSLATED)).decode() == TRANSLATED


def test_polib_reads_what_is_written():
    entries = {each.msgid: each for each in polib.pofile(translate(read(PO)).decode())}
    assert entries["Open %s"].msgstr == "OPEN %s"
    assert "c-format" in entries['One line\nand "two" \\ lines.\n'].flags
    assert entries["%d file"].msgstr_plural == {0: "%d FILE", 1: "%d FILES"}
    assert entries["gone"].obsolete
    assert {each for each, entry in entries.items() if entry.fuzzy} == {
        "Open %s", 'One line\nand "two" \\ lines.\n', "Half", "%d file", "Empty",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("num_forms", "forms"),
    [(1, ["%d DOGS"]), (2, ["%d DOG", "%d DOGS"]), (3, ["%d DOG", "%d DOGS", "%d DOGS"])],
)
def test_plural_forms_are_as_many_as_the_language_has(num_forms, forms):
    text = 'msgid "%d dog"\nmsgid_plural "%d dogs"\n'
    text += "".join(f'msgstr[{number}] ""\n' for number in range(num_forms))
    (entry,) = polib.pofile(translate(read(text)).decode())
    assert [entry.msgstr_plural[number] for number in range(num_forms)] == forms


@settings(max_examples=30)
@given(
    entries=st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t")),
            st.sampled_from(["", "fertig\n"]),
            st.sampled_from([None, "menu"]),
            st.sampled_from([[], ["c-format"], ["fuzzy", "c-format"]]),
        ),
        max_size=4,
        unique_by=lambda each: each[0],
    )
)
def test_what_polib_writes_is_read(entries):
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for source, target, context, flags in entries:
        catalogue.append(
            polib.POEntry(msgid=source, msgstr=target, msgctxt=context, flags=list(flags))
        )
    text = str(catalogue)
    written = polib.pofile(translate(read(text)).decode())
    assert len(written) == len(polib.pofile(text))
    for before, after in zip(polib.pofile(text), written, strict=True):
        assert (before.msgid, before.msgctxt) == (after.msgid, after.msgctxt)
        if before.msgstr or not before.msgid:
            assert before.msgstr == after.msgstr


def test_a_last_line_without_an_end_stays_one():
    assert (
        translate(read('msgid "dog"\nmsgstr ""')).decode() == '#, fuzzy\nmsgid "dog"\nmsgstr "DOG"'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1 is none of a PO file"),
        ('msgid "a"\nmsgid_plurals "b"', "line 2 is none of a PO file"),
        ('"a"', "line 1 is none of a PO file"),
        ('msgid "a"\nmsgid_plural "b"\nmsgid_plural "b"', "line 3: a second msgid_plural of the"),
    ],
)
def test_other_files_are_refused(text, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read(text)
    assert caught.value.kind == "bad_request"
