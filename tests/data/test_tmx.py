"""Translation memories: every form that programs write, compared with a reader of whole trees."""

import gzip
import io
import lzma
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import tmx
from dragoman.data.corpus import CorpusFiles, read_pairs
from dragoman.data.tmx import is_tmx, matches, read_tmx
from dragoman.errors import DataError

CODES = ("bpt", "ept", "ph", "it", "ut")
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
PACKERS = {"": lambda raw: raw, ".gz": gzip.compress, ".xz": lzma.compress}
HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header/><body>\n'
)
UNIT = (
    '<tu><tuv xml:lang="de-DE"><seg>Guten {}</seg></tuv>'
    '<tuv xml:lang="en"><seg>Good {}</seg></tuv></tu>\n'
)
END = "</body></tmx>\n"


def memory(*units, head=HEAD, end=END):
    return (head + "".join(units) + end).encode()


def read(raw, languages=("de", "en"), path=Path("my.tmx")):
    return list(read_tmx(io.BytesIO(raw), path, languages))


def message_of(raw, languages=("de", "en")):
    with pytest.raises(DataError) as caught:
        read(raw, languages)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What is read is what a reader of the whole tree finds

TEXT = st.text(st.characters(categories=("L", "P", "Zs", "N")) | st.sampled_from("<>&'\"\n\t"))
INLINE = st.lists(st.tuples(st.sampled_from((*CODES, "hi", "sub")), TEXT, TEXT), max_size=3)
LANGUAGES = st.sampled_from(("de", "de-AT", "EN_us", "en", "fr"))
UNITS = st.lists(st.lists(st.tuples(LANGUAGES, TEXT, INLINE), max_size=4), min_size=1, max_size=5)


def make_tree(units):
    root = ET.Element("tmx", version="1.4")
    body = ET.SubElement(root, "body")
    for variants in units:
        unit = ET.SubElement(body, "tu")
        ET.SubElement(unit, "note").text = "no text"
        for language, text, inline in variants:
            variant = ET.SubElement(unit, "tuv", {XML_LANG: language})
            segment = ET.SubElement(variant, "seg")
            segment.text = text
            for name, inner, after in inline:
                child = ET.SubElement(segment, name)
                child.text, child.tail = inner, after
    return root


def text_of(element):
    inner = [element.text or ""]
    for child in element:
        inner += [text_of(child) if child.tag not in CODES else "", child.tail or ""]
    return "".join(inner)


def pairs_of(root):
    for unit in root.iter("tu"):
        found = [(each.get(XML_LANG).lower()[:2], each.find("seg")) for each in unit.iter("tuv")]
        found = [(code, " ".join(text_of(segment).split())) for code, segment in found]
        for code, source in found:
            if code == "de":
                yield from ((source, target) for other, target in found if other == "en")


@given(UNITS, st.sampled_from(("utf-8", "utf-16", "iso-8859-1")), st.integers(1, 60))
def test_equals_a_reader_of_whole_trees(units, encoding, chunk_bytes):
    root = make_tree(units)
    raw = ET.tostring(root, encoding=encoding, xml_declaration=True)
    wanted = list(pairs_of(ET.fromstring(raw)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tmx, "CHUNK_BYTES", chunk_bytes)
        if wanted:
            assert read(raw) == wanted
        else:
            assert "has no segment in both de and en" in message_of(raw)


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_files_are_corpora_like_others(tmp_path, suffix):
    units = [UNIT.format(number, number) for number in range(20_000)]
    path = tmp_path / f"my.tmx{suffix}"
    path.write_bytes(PACKERS[suffix](memory(*units)))
    files = CorpusFiles(tmx=(path,), languages=("de", "en"))
    pairs = list(read_pairs(files))
    assert pairs == [(f"Guten {number}", f"Good {number}") for number in range(20_000)]


def test_attributes_of_the_first_versions_are_known():
    raw = memory('<tu><tuv lang="DE"><seg>a</seg></tuv><tuv lang="EN-GB"><seg>b</seg></tuv></tu>')
    assert read(raw) == [("a", "b")]
    assert read(raw, ("en", "de")) == [("b", "a")]


def test_units_come_while_the_file_is_being_read():
    class Endless(io.RawIOBase):
        def read(self, _size=-1):
            self.count = getattr(self, "count", 0) + 1
            return HEAD.encode() if self.count == 1 else UNIT.format("Tag", "day").encode()

    file = Endless()
    pairs = read_tmx(file, Path("x"), ("de", "en"))
    assert [next(pairs) for _ in range(5)] == [("Guten Tag", "Good day")] * 5
    assert file.count == 6


def test_a_language_is_not_paired_with_itself():
    raw = memory('<tu><tuv xml:lang="pt-BR"><seg>a</seg></tuv></tu>',
                 '<tu><tuv xml:lang="pt-BR"><seg>a</seg></tuv>'
                 '<tuv xml:lang="pt"><seg>b</seg></tuv></tu>')  # fmt: skip
    assert read(raw, ("pt", "pt-BR")) == [("a", "b"), ("b", "a")]


def test_endless_segments_and_variants_are_passed_over():
    long = UNIT.format("x" * (tmx.LONGEST_SEGMENT + 1), "y")
    variant = '<tuv xml:lang="de"><seg>{}</seg></tuv>'
    many = "".join(variant.format(number) for number in range(1000))
    many = f'<tu>{many}<tuv xml:lang="en"><seg>b</seg></tuv></tu>'
    english_first = f'<tu><tuv xml:lang="en"><seg>b</seg></tuv>{many[4:]}'
    found = read(memory(long, many, UNIT.format("Tag", "day"), english_first))
    assert found[0] == ("Guten Tag", "Good day")
    assert len(found) == 2 * tmx.MOST_VARIANTS


@pytest.mark.parametrize(
    ("one", "other", "is_match"),
    [("de", "de", True), ("de-DE", "de", True), ("DE_at", "de", True), ("de", "de-CH", True),
     ("de-AT", "de-CH", False), ("den", "de", False), ("", "de", False),
     ("zh-Hant-TW", "zh-Hant", True)],
)  # fmt: skip
def test_codes_match_by_their_parts(one, other, is_match):
    assert matches(one, other) == matches(other, one) == is_match


def test_names_of_memories():
    names = ("a.tmx", "a.TMX", "a.tmx.gz", "a.tmx.xz")
    assert all(is_tmx(Path(each)) for each in names)
    assert not any(is_tmx(Path(each)) for each in ("a.tsv", "tmx", "a.tmx.b.tsv"))


# Faults: one line, with the place


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (memory(UNIT, end=""), "my.tmx, line 5: damaged (no element found); mend it, or export it"),
        (memory(UNIT, "<tu></tuv>"), "my.tmx, line 5: damaged (mismatched tag)"),
        (b"", "my.tmx, line 1: damaged (no element found)"),
        (b"de\ten\n", "my.tmx, line 1: damaged (syntax error)"),
        (b"<html><p>x</p></html>", "line 1: no TMX file (it begins with <html>); give another"),
        (b'<?xml version="1.0" encoding="none"?><tmx/>', "line 1: damaged (unknown encoding"),
        (memory("<tu>\xe4").replace("\xe4".encode(), b"\xe4"), "line 4: damaged (not well-formed"),
        (memory("<tu>&#1;</tu>"), "line 4: damaged (reference to invalid character number)"),
        (memory("<tuv><seg>&eacute;</seg></tuv>"),
         "line 4: uses the entity “eacute”, which TMX does not have; write the text itself"),
        (b'<!DOCTYPE tmx [\n<!ENTITY a "aaaaaaaaaa">\n<!ENTITY b "&a;&a;&a;">]>\n<tmx>&b;</tmx>',
         "line 2: uses the entity “a”"),
        (memory(), "my.tmx: has no segment in both de and en; its languages: none; give --s"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_its_place(raw, message):
    assert message in message_of(raw)


def test_another_language_is_named():
    raw = memory(UNIT, *(f'<tu><tuv xml:lang="x{n}"><seg>a</seg></tuv></tu>' for n in range(99)))
    message = message_of(raw, ("fr", "en"))
    assert (
        "no segment in both fr and en; its languages: de-DE, en, x0, x1, x2, x3, x4, x5;" in message
    )


def test_packed_files_that_end_early_say_so(tmp_path):
    path = tmp_path / "my.tmx.gz"
    raw = gzip.compress(memory(*(UNIT.format(number, number) for number in range(3000))))
    path.write_bytes(raw[: len(raw) // 2])
    files = CorpusFiles(tmx=(path,), languages=("de", "en"))
    with pytest.raises(
        DataError, match=r"my\.tmx\.gz: damaged after .* segments .*get the file ag"
    ):
        list(read_pairs(files))


def test_languages_must_be_known(tmp_path):
    path = tmp_path / "my.tmx"
    path.write_bytes(memory(UNIT))
    with pytest.raises(DataError, match="holds several languages; give --source-language and"):
        list(read_pairs(CorpusFiles(tmx=(path,))))
