import contextlib
import io
import re
import tracemalloc
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.documents import office_documents
from dragoman.serving.documents.office_documents import MOST_MEMBERS, read_office
from dragoman.serving.service_types import ServiceError

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MOST = 1_000_000


def pack(files, **said):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content, **said)
    return file.getvalue()


def unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def docx(body):
    xml = f'<?xml version="1.0" encoding="UTF-8"?>\n<w:document xmlns:w="{W}" xmlns:mc="m" '
    xml += f'xmlns:wp="wp"><w:body>{body}</w:body></w:document>'
    return pack(
        {"[Content_Types].xml": "<Types/>", "word/document.xml": xml, "word/media/a": b"\0"}
    )


def rewrite(content, extension, change=lambda text: text, spans=()):
    document = read_office(content, extension, MOST)
    return document.write([(change(text), spans) for text in document.texts])


def body_of(content):
    xml = unpack(content)["word/document.xml"].decode()
    return re.search("<w:body>(.*)</w:body>", xml, re.DOTALL).group(1)


def run(text, look=""):
    properties = f"<w:rPr><w:{look}/></w:rPr>" if look else ""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_word_runs_are_one_sentence_and_keep_their_looks():
    body = f"<w:p><w:pPr><w:jc/></w:pPr>{run('The ')}{run('red house', 'b')}{run(' is big.')}</w:p>"
    document = read_office(docx(body), ".docx", MOST)
    assert document.texts == ["The red house is big."]
    links = [(0, 3, 0, 2), (4, 7, 10, 15), (8, 13, 3, 9), (14, 16, 16, 19), (17, 21, 20, 27)]
    written = body_of(document.write([("La maison rouge est grande.", links)]))
    expected = f"{run('La ')}{run('maison rouge ', 'b')}{run('est grande.')}"
    assert written == f"<w:p><w:pPr><w:jc/></w:pPr>{expected}</w:p>"


def test_word_runs_that_look_the_same_are_joined():
    cut = f"{run('The o')}<w:proofErr/>{run('ld ')}{run('d', 'b')}{run('og', 'b')}{run('.')}"
    cut = cut.replace(' xml:space="preserve"', "")
    document = read_office(docx(f"<w:p>{cut}</w:p>"), ".docx", MOST)
    assert document.texts == ["The old dog."]
    written = body_of(rewrite(docx(f"<w:p>{cut}</w:p>"), ".docx"))
    joined = f"{run('The old ')}<w:proofErr/>{run('dog', 'b')}{run('.')}"
    assert written.replace("<w:proofErr/>", "") == f"<w:p>{joined}</w:p>".replace(
        "<w:proofErr/>", ""
    )


def test_breaks_tabs_fields_and_deletions_of_word():
    body = (
        "<w:p><w:r><w:t>One</w:t><w:br/><w:t>two</w:t><w:tab/></w:r>"
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r>"
        f"<w:hyperlink>{run('a link')}</w:hyperlink>{run(' here')}</w:p>"
        f"<w:tbl><w:tr><w:tc><w:p>{run('cell')}</w:p></w:tc></w:tr></w:tbl>"
    )
    document = read_office(docx(body), ".docx", MOST)
    assert document.texts == ["One", "two", "a link here", "cell"]
    written = body_of(rewrite(docx(body), ".docx"))
    kept = body.replace("<w:t>", '<w:t xml:space="preserve">')
    assert written.replace("</w:t></w:r></w:hyperlink>", "").replace(" ", "") == kept.replace(
        "</w:t></w:r></w:hyperlink>", ""
    ).replace(" ", "")


FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'


def test_fields_of_word_stay_whole_wherever_their_result_goes():
    begin, separate, end = map(FIELD.format, ("begin", "separate", "end"))
    code = "<w:r><w:instrText>REF a</w:instrText></w:r>"
    body = f"<w:p>{run('See ')}{begin}{code}{separate}{run('page two')}{end}{run(' now.')}</w:p>"
    document = read_office(docx(body), ".docx", MOST)
    assert document.texts == ["See page two now."]
    links = [(4, 8, 0, 5), (9, 12, 6, 10), (0, 3, 11, 15), (13, 17, 16, 20)]
    written = body_of(document.write([("Seite zwei siehe nun.", links)]))
    field = f"{begin}{code}{separate}{run('Seite zwei ')}{end}"
    assert written == f"<w:p>{field}{run('siehe ')}{run('nun.')}</w:p>"


def test_inline_elements_of_word_do_not_end_a_sentence():
    body = (
        f"<w:p>{run('Choose ')}<w:sdt><w:sdtPr><w:alias/></w:sdtPr><w:sdtContent>{run('one')}"
        f'</w:sdtContent></w:sdt><w:fldSimple w:instr="x">{run(" of ")}</w:fldSimple>'
        f"<w:moveTo>{run('all')}</w:moveTo><w:moveFrom>{run('none')}</w:moveFrom>"
        f'<w:hyperlink w:tooltip="A tip">{run(" these.")}</w:hyperlink></w:p>'
    )
    document = read_office(docx(body), ".docx", MOST)
    assert document.texts == ["Choose one of all these.", "A tip"]


def test_shapes_and_fields_of_open_documents_do_not_end_a_sentence():
    body = (
        '<o:x xmlns:o="o" xmlns:text="t" xmlns:draw="d" xmlns:office="f"><text:p>By '
        "<text:author-name>Ann</text:author-name>, a <draw:custom-shape><text:p>box</text:p>"
        '</draw:custom-shape>box <text:a office:title="A tip">here</text:a></text:p></o:x>'
    )
    document = read_office(pack({"content.xml": body}), ".odt", MOST)
    assert document.texts == ["By , a box here", "box", "A tip"]


def test_charts_of_open_documents():
    body = (
        '<o:x xmlns:o="o" xmlns:text="t" xmlns:svg="s"><text:p>Title</text:p><svg:desc>A.B1:A.B2'
        "</svg:desc></o:x>"
    )
    files = {"content.xml": "<x/>", "Object 1/content.xml": body}
    assert upper_parts(files, ".odp")["Object 1/content.xml"] == body.replace("Title", "TITLE")


def test_raised_numbers_of_office_programs_stay():
    raised = run("1").replace("<w:t", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t')
    body = f"<w:p>{run('It is good.')}{raised}{run(' Next one.')}</w:p>"
    assert read_office(docx(body), ".docx", MOST).texts == ["It is good. Next one."]
    assert body_of(rewrite(docx(body), ".docx", str.upper)) == (
        f"<w:p>{run('IT IS GOOD.')}{raised}{run(' NEXT ONE.')}</w:p>"
    )


def upper_parts(files, extension):
    """Write all texts of an archive in capitals, and its language as French."""
    document = read_office(pack(files), extension, MOST).into("en", "fr")
    return {
        name: part.decode()
        for name, part in unpack(
            document.write([(text.upper(), ()) for text in document.texts])
        ).items()
    }


def test_comments_charts_and_alternative_texts_of_word():
    xml = f'<w:x xmlns:w="{W}" xmlns:wp="wp" xmlns:a="a" xmlns:c="c">{{}}</w:x>'
    picture = '<w:p><w:r><w:drawing><wp:docPr id="1" name="Dog" descr="{}" title="b.png"/>'
    picture += "</w:drawing></w:r></w:p>"
    label = "<c:cat><c:strRef><c:f>Sheet1!A2</c:f><c:strCache><c:pt><c:v>{}</c:v></c:pt>"
    label += "</c:strCache></c:strRef></c:cat><c:numCache><c:pt><c:v>12</c:v></c:pt></c:numCache>"
    files = {
        "word/document.xml": xml.format(f"<w:p>{run('One')}</w:p>{picture.format('A dog')}"),
        "word/comments.xml": xml.format(f"<w:p>{run('two')}</w:p>"),
        "word/charts/chart1.xml": xml.format(label.format("East")),
        "word/styles.xml": xml.format('<w:lang w:val="en-US" w:bidi="ar-SA"/>'),
    }
    assert upper_parts(files, ".docx") == {
        "word/document.xml": xml.format(f"<w:p>{run('ONE')}</w:p>{picture.format('A DOG')}"),
        "word/comments.xml": xml.format(f"<w:p>{run('TWO')}</w:p>"),
        "word/charts/chart1.xml": xml.format(label.format("EAST")),
        "word/styles.xml": xml.format('<w:lang w:val="fr" w:bidi="ar-SA"/>'),
    }


def test_charts_comments_and_alternative_texts_of_slides():
    xml = '<p:x xmlns:p="p" xmlns:a="a" xmlns:c="c">{}</p:x>'
    shape = (
        '<p:nvSpPr><p:cNvPr id="2" name="Dog" descr="{}"/></p:nvSpPr><a:p><a:r><a:rPr lang="{}"/>'
    )
    shape += "<a:t>{}</a:t></a:r></a:p>"
    series = "<c:ser><c:tx><c:strRef><c:strCache><c:pt><c:v>{}</c:v></c:pt></c:strCache></c:strRef>"
    series += "</c:tx></c:ser><c:title><a:p><a:r><a:t>{}</a:t></a:r></a:p></c:title>"
    files = {
        "ppt/slides/slide1.xml": xml.format(shape.format("A dog", "en-US", "text")),
        "ppt/charts/chart1.xml": xml.format(series.format("Sales", "Year")),
        "ppt/comments/comment1.xml": xml.format("<p:text>Why?</p:text>"),
        "ppt/diagrams/data1.xml": xml.format("<a:p><a:r><a:t>box</a:t></a:r></a:p>"),
    }
    assert upper_parts(files, ".pptx") == {
        "ppt/slides/slide1.xml": xml.format(shape.format("A DOG", "fr", "TEXT")),
        "ppt/charts/chart1.xml": xml.format(series.format("SALES", "YEAR")),
        "ppt/comments/comment1.xml": xml.format("<p:text>WHY?</p:text>"),
        "ppt/diagrams/data1.xml": xml.format("<a:p><a:r><a:t>BOX</a:t></a:r></a:p>"),
    }


def test_contents_titles_and_languages_of_books():
    ncx = '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO" "x.dtd"><ncx xml:lang="{}">'
    ncx += "<docAuthor><text>Ann</text></docAuthor><navLabel><text>{}</text></navLabel></ncx>"
    opf = "<package><dc:title>{}</dc:title><dc:creator>Ann</dc:creator><dc:language>{}"
    opf += "</dc:language></package>"
    page = '<html lang="{}"><body><img alt="{}"/><p>{}</p></body></html>'
    svg = "<svg><text>{}</text></svg>"
    entity = '<!DOCTYPE svg [<!ENTITY a "b">]><svg><text>&a;</text></svg>'
    files = {
        "toc.ncx": ncx.format("en", "Part one"),
        "a.opf": opf.format("The dog", "en-GB"),
        "a.xhtml": page.format("en", "A dog", "Text"),
        "b.svg": svg.format("East"),
        "c.svg": entity,
    }
    assert upper_parts(files, ".epub") == {
        "toc.ncx": ncx.format("fr", "PART ONE"),
        "a.opf": opf.format("THE DOG", "fr"),
        "a.xhtml": page.format("fr", "A DOG", "TEXT"),
        "b.svg": svg.format("EAST"),
        "c.svg": entity,
    }


def test_headers_alternative_texts_and_languages_of_open_documents():
    xml = '<o:x xmlns:o="o" xmlns:text="t" xmlns:svg="s" xmlns:draw="d" xmlns:fo="f" xmlns:dc="c" '
    xml += 'xmlns:office="f">{}</o:x>'
    frame = "<text:p>a <draw:frame><svg:title>{}</svg:title><svg:desc>{}</svg:desc>"
    frame += "</draw:frame></text:p>"
    header = (
        '<office:master-styles><text:p>{}</text:p></office:master-styles><o:y fo:language="{}" '
    )
    header += 'fo:country="{}"/>'
    files = {
        "content.xml": xml.format(frame.format("b", "c")),
        "styles.xml": xml.format(header.format("head", "en", "US")),
        "meta.xml": xml.format("<dc:language>en-US</dc:language>"),
    }
    assert upper_parts(files, ".odt") == {
        "content.xml": xml.format(
            frame.format("B", "C").replace("a", "A", 1).replace("drAw", "draw")
        ),
        "styles.xml": xml.format(header.format("HEAD", "fr", "none")),
        "meta.xml": xml.format("<dc:language>fr</dc:language>"),
    }


def test_text_boxes_of_word_are_islands():
    box = f"<w:drawing><wp:x><w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent></wp:x>"
    body = f"<w:p>{run('The dog ')}<w:r>{box}</w:drawing></w:r>{run('sees it.')}</w:p>"
    document = read_office(docx(body), ".docx", MOST)
    assert document.texts == ["The dog sees it.", "in a box"]
    written = body_of(rewrite(docx(body), ".docx"))
    assert written.count("in a box") == 1
    assert written.count("<w:drawing>") == 1


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["one ", "two", " three ", " ", "&amp;", ""]), st.sampled_from("bi ")
    ),
    min_size=1,
    max_size=6,
)
SPANS = st.lists(st.tuples(*[st.integers(-2, 30)] * 4), max_size=8)


@given(
    runs=RUNS, translation=st.sampled_from(["", "un", "un deux trois.", "a <b> & c"]), spans=SPANS
)
@settings(max_examples=60)
def test_any_translation_stands_in_texts_of_word_only(runs, translation, spans):
    body = "".join(run(text, look.strip()) for text, look in runs)
    document = read_office(docx(f"<w:p>{body}</w:p>"), ".docx", MOST)
    written = document.write([(translation, spans) for _ in document.texts])
    root = ElementTree.fromstring(unpack(written)["word/document.xml"])
    outside = [each.text for each in root.iter() if each.text and each.tag != f"{{{W}}}t"]
    tails = [each.tail for each in root.iter() if each.tail]
    assert not outside + tails
    text = "".join(each.text or "" for each in root.iter(f"{{{W}}}t"))
    if document.texts:
        assert text.strip() == translation
        source = "".join(each for each, _ in runs)
        spaces = [len(each) - len(each.lstrip()) for each in (source, text)]
        assert spaces[0] == spaces[1] or not translation
    for each in root.iter(f"{{{W}}}r"):
        tags = [inner.tag for inner in each]
        assert tags in ([f"{{{W}}}t"], [f"{{{W}}}rPr", f"{{{W}}}t"])


def test_slides():
    slide = (
        '<p:sld xmlns:p="p" xmlns:a="a"><p:txBody><a:bodyPr/><a:p><a:pPr/>'
        "<a:r><a:rPr b='1'/><a:t>Big </a:t></a:r><a:r><a:rPr/><a:t>news</a:t></a:r>"
        "<a:endParaRPr/></a:p></p:txBody></p:sld>"
    )
    content = pack({"ppt/slides/slide1.xml": slide, "ppt/presentation.xml": "<x>Left</x>"})
    assert read_office(content, ".pptx", MOST).texts == ["Big news"]
    assert unpack(rewrite(content, ".pptx"))["ppt/slides/slide1.xml"].decode() == slide


OPEN = (
    '<?xml version="1.0"?><office:document-content xmlns:office="o" xmlns:text="t" '
    'xmlns:draw="d" xmlns:style="s"><office:automatic-styles><style:x>no</style:x>'
    "</office:automatic-styles><office:body><office:text>"
    '<text:h>Title</text:h><text:p>The <text:span text:style-name="T1">red house</text:span> is '
    "big<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>A note."
    '</text:p></text:note-body></text:note>.</text:p><text:p>Two<text:s text:c="3"/>words'
    "<text:line-break/>three<text:tab/>four</text:p></office:text></office:body>"
    "</office:document-content>"
)


@pytest.mark.parametrize("extension", [".odt", ".odp"])
def test_open_documents(extension):
    content = pack({"mimetype": "application/x", "content.xml": OPEN})
    document = read_office(content, extension, MOST)
    assert document.texts == [
        "Title",
        "The red house is big.",
        "A note.",
        "Two words",
        "three",
        "four",
    ]
    assert unpack(rewrite(content, extension))["content.xml"].decode() == OPEN
    written = unpack(rewrite(content, extension, str.upper))["content.xml"].decode()
    tags = [Counter(re.findall("<[^>]*>", each)) for each in (OPEN, written)]
    assert tags[0] == tags[1]
    assert '<text:span text:style-name="T1">RED HOUSE</text:span>' in written


def test_books():
    page = "<?xml version='1.0'?><!DOCTYPE html><html><body><p>One <i>two</i>.</p></body></html>"
    content = pack({"mimetype": "application/epub+zip", "OEBPS/1.xhtml": page, "a.css": "p {}"})
    assert read_office(content, ".epub", MOST).texts == ["One two."]
    assert unpack(rewrite(content, ".epub")) == unpack(content)


def test_order_times_and_compression_are_kept():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype", (1999, 12, 31, 0, 0, 0)), "application/x")
        archive.writestr("content.xml", OPEN, zipfile.ZIP_DEFLATED)
        archive.writestr("Pictures/", b"")
    written = rewrite(file.getvalue(), ".odt")
    infos = [zipfile.ZipFile(io.BytesIO(each)).infolist() for each in (file.getvalue(), written)]
    for before, after in zip(*infos, strict=True):
        assert (after.filename, after.date_time) == (before.filename, before.date_time)
        assert (after.compress_type, after.external_attr) == (
            before.compress_type,
            before.external_attr,
        )


def test_characters_that_xml_forbids_are_left_out():
    content = pack({"content.xml": OPEN})
    written = rewrite(content, ".odt", lambda text: f"\x01{text}\uffff")
    assert ElementTree.fromstring(unpack(written)["content.xml"]) is not None


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "the file is damaged, or no archive .File is not a zip file."),
        (b"", "the file is damaged, or no archive"),
        (pack({"content.xml": OPEN})[:-60], "the file is damaged, or no archive"),
        (pack({"other.xml": OPEN}), "the file has no text where odt files have it"),
        (pack({"content.xml": BOMB}), "a part of the file is wrong or hostile XML"),
        (pack({"content.xml": "<a>"}), "a part of the file is wrong or hostile XML"),
        (pack({"content.xml": b"<a>\xff</a>"}), "a part of the file is not UTF-8"),
        (pack({"content.xml": OPEN, "../evil": "x"}), "has a name that leads out of it"),
        (pack({"content.xml": OPEN, "/etc/passwd": "x"}), "has a name that leads out of it"),
        (pack({"content.xml": OPEN, "a/../../b": "x"}), "has a name that leads out of it"),
        (pack({"content.xml": OPEN, "C:evil": "x"}), "has a name that leads out of it"),
        (pack({"content.xml": OPEN, "..\\evil": "x"}), "has a name that leads out of it"),
    ],
)
def test_wrong_and_hostile_archives_are_refused(content, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read_office(content, ".odt", MOST)
    assert caught.value.kind == "bad_request"


def test_two_parts_of_a_name_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("content.xml", OPEN)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("content.xml", OPEN)
    with pytest.raises(ServiceError, match="the archive has two parts of the same name"):
        read_office(file.getvalue(), ".odt", MOST)


def test_an_encrypted_archive_is_refused():
    content = bytearray(pack({"content.xml": OPEN}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    with pytest.raises(ServiceError, match="the file is encrypted; remove the password"):
        read_office(bytes(content), ".odt", MOST)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_than_those_of_office_programs_are_refused(packing):
    content = pack({"content.xml": OPEN}, compress_type=packing)
    with pytest.raises(ServiceError, match="packed in a way that office programs do not know"):
        read_office(content, ".odt", MOST)


@pytest.mark.parametrize("encoding", ["nonsense", "undefined", "utf-7", "utf-16", "rot13"])
def test_encodings_that_nobody_knows_are_refused(encoding):
    xml = f'<?xml version="1.0" encoding="{encoding}"?>{OPEN.partition("?>")[2] or OPEN}'
    with pytest.raises(ServiceError, match="a part of the file is wrong or hostile XML"):
        read_office(pack({"content.xml": xml}), ".odt", MOST)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_archives_are_refused_or_read(changes):
    content = bytearray(docx(f"<w:p>{run('The dog')}</w:p>"))
    for place, byte in changes:
        content[place % len(content)] = byte
    try:
        document = read_office(bytes(content), ".docx", MOST)
    except ServiceError:
        return
    document.write([(text, ()) for text in document.texts])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "end"),
    [
        ("<w:r><w:t>a</w:t></w:r><w:proofErr/>", ""),
        ("<w:r><w:rPr>", "</w:rPr></w:r>"),
    ],
)
def test_many_runs_take_no_more_time_than_their_number(piece, end):
    def read(count):
        content = docx(f"<w:p>{piece * count}{end * count}</w:p>")
        with contextlib.suppress(ServiceError):
            read_office(content, ".docx", 100 * MOST)

    assert grows_linearly(read, 1500)


def test_what_is_not_translated_is_not_kept_unpacked():
    content = pack({"content.xml": OPEN, "large": bytes(20 * MOST)})
    tracemalloc.start()
    document = read_office(content, ".odt", 100 * MOST)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < MOST
    written = document.write([(text, ()) for text in document.texts])
    assert unpack(written)["large"] == bytes(20 * MOST)


def test_bombs_are_refused_before_they_are_unpacked():
    content = pack({"content.xml": OPEN, "big": b"\0" * (MOST + 1)})
    assert len(content) < 10_000
    with pytest.raises(ServiceError, match="bytes in 2 parts when unpacked") as caught:
        read_office(content, ".odt", MOST)
    assert caught.value.kind == "too_long"
    many = pack({str(number): b"" for number in range(MOST_MEMBERS + 1)})
    with pytest.raises(ServiceError, match=r"0 bytes in 5,001 parts"):
        read_office(many, ".odt", MOST)


def test_a_lying_header_does_not_help_a_bomb():
    content = bytearray(pack({"content.xml": OPEN, "big": b"\0" * (2 * MOST)}))
    place = content.rindex(b"PK\x01\x02")
    content[place + 24 : place + 28] = (5).to_bytes(4, "little")
    with pytest.raises(ServiceError, match="the file is damaged, or no archive"):
        read_office(bytes(content), ".odt", MOST)


def test_too_much_xml_is_refused(monkeypatch):
    monkeypatch.setattr(office_documents, "MOST_MARKUP", 100)
    with pytest.raises(ServiceError, match=f"the document has {len(OPEN)} characters, but 100"):
        read_office(pack({"content.xml": OPEN}), ".odt", MOST)
