import re
from xml.etree import ElementTree

import pytest
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents.documents import read_document
from dragoman.serving.service_types import ServiceError


def read(text, extension=".xliff", target="fr"):
    return read_document(f"a{extension}", text.encode(), 10_000_000, target)


FIRST = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <!-- a comment -->
 <file original="a" source-language="en" datatype="plaintext"{language}><body>
  <trans-unit id="1">
    <source>Hello <g id="1">big <x id="2"/></g> world {{name}} &amp; %s</source>{one}
  </trans-unit>
  <trans-unit id="2" approved="yes"><source>Yes</source><target state="new">Oui</target></trans-unit>
  <trans-unit id="3"><source>Kept</source><target state="translated">Gardé</target></trans-unit>
  <trans-unit id="4"><source>Kept</source><target>Gardé</target></trans-unit>
  <trans-unit id="5"><source>A <bpt id="1">&lt;b></bpt>new<ept id="1">&lt;/b></ept></source>{two}
  </trans-unit>
  <group translate="no"><trans-unit id="6"><source>No</source></trans-unit></group>
  <trans-unit id="7"><source>{{N, plural, =1 {{one <x id="1"/> dog}} other {{many dogs}}}}</source>{three}
   <alt-trans><source>Other</source><target>Autre</target></alt-trans></trans-unit>
  <trans-unit id="8"><source>The <mrk mtype="protected">key</mrk></source><seg-source>The</seg-source>{four}</trans-unit>
  <trans-unit id="9"><source>%s!</source></trans-unit>
 </body></file></xliff>
"""  # noqa: E501
REVIEW = '<target state="needs-review-translation">'


def test_units_of_xliff_1_get_targets_to_be_reviewed():
    text = FIRST.format(
        language="", one="", two='<target state="new"/>',
        three='<target state="needs-translation">old</target>', four="",
    )  # fmt: skip
    assert read(text).texts == ["Hello big world &", "A new", "one dog", "many dogs", "The"]
    assert translate(read(text)).decode() == FIRST.format(
        language=' target-language="fr"',
        one=f'\n    {REVIEW}HELLO <g id="1">BIG <x id="2"/></g> WORLD {{name}} &amp; %s</target>',
        two=f'{REVIEW}A <bpt id="1">&lt;b></bpt>NEW<ept id="1">&lt;/b></ept></target>',
        three=f'{REVIEW}{{N, plural, =1 {{ONE <x id="1"/> DOG}} other {{MANY DOGS}}}}</target>',
        four=f'{REVIEW}THE <mrk mtype="protected">key</mrk></target>',
    )


SECOND = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en-US"{language}>
 <file id="f1"><unit id="u1">
  <originalData><data id="d1">a word</data></originalData>
  <segment id="s1"{one}><source>Press <pc id="1">the <mrk id="m" translate="no">OK</mrk></pc> key
<sc id="2"/>now<ec startRef="2"/></source>{two}</segment>
  <segment state="final"><source>Done</source><target>Fini</target></segment>
  <segment state="translated"><source>Done</source></segment>
  <segment><source>Done</source><target>Fini</target></segment>
  <segment state="{three}"><source>Again</source><target>{four}</target></segment>
  <ignorable><source>x</source></ignorable>
 </unit><unit id="u2" translate="no"><segment><source>No</source></segment></unit></file></xliff>"""  # noqa: E501


def test_segments_of_xliff_2_get_targets_that_are_translated_but_not_reviewed():
    text = SECOND.format(language="", one="", two="", three='initial" subState="a:b', four="x")
    assert read(text).texts == ["Press the key", "now", "Again"]
    assert translate(read(text)).decode() == SECOND.format(
        language=' trgLang="fr"',
        one=' state="translated"',
        two='<target>PRESS <pc id="1">THE <mrk id="m" translate="no">OK</mrk></pc> KEY\n'
        '<sc id="2"/>NOW<ec startRef="2"/></target>',
        three="translated",
        four="AGAIN",
    )


def test_prefixes_of_names_are_kept():
    text = (
        '<a:xliff xmlns:a="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><a:file '
        'target-language="fr-CA"><a:trans-unit id="1"><a:source>dog</a:source></a:trans-unit>'
        "</a:file></a:xliff>"
    )
    written = translate(read(text)).decode()
    assert written == text.replace(
        "</a:source>",
        '</a:source><a:target state="needs-review-translation">DOG</a:target>',
    )


def test_codes_that_overlap_elements_are_kept_once():
    inside = '<bpt id="1">[</bpt>one <g id="2">two<ept id="1">]</ept> three</g>'
    text = f'<xliff version="1.2"><trans-unit id="1"><source>{inside}</source></trans-unit></xliff>'
    written = ElementTree.fromstring(translate(read(text)))
    target = written.find("trans-unit/target")
    assert [each.tag for each in target.iter()] == ["target", "bpt", "g", "ept"]
    assert "".join(target.itertext()) == "[ONE TWO] THREE"


def test_codes_stay_in_pairs_when_words_change_places():
    inside = 'the <bpt id="1">[</bpt>old<ept id="1">]</ept> dog'
    text = f'<xliff version="1.2"><trans-unit id="1"><source>{inside}</source></trans-unit></xliff>'
    written = read(text).write([("LE CHIEN VIEUX", [(0, 3, 0, 2), (8, 11, 3, 8), (4, 7, 9, 14)])])
    assert '>LE CHIEN <bpt id="1">[</bpt>VIEUX<ept id="1">]</ept></target>' in written.decode()


@pytest.mark.parametrize(
    "inside", ["a &lt;b class='x'&gt;dog&lt;/b&gt; &amp;amp; cat", "<![CDATA[a <b>dog</b>]]> now"]
)
def test_tags_and_entities_of_escaped_html_are_kept(inside):
    text = f'<xliff version="1.2"><trans-unit id="1"><source>{inside}</source></trans-unit></xliff>'
    written = ElementTree.fromstring(translate(read(text)))
    source, target = (written.find(f"trans-unit/{each}").text for each in ("source", "target"))
    expected = re.sub(r"<[^>]*>|&\w+;|\w+", lambda match: _upper(match.group()), source)
    assert target == expected
    assert f"<source>{inside}</source>" in translate(read(text)).decode()


def _upper(word):
    return word.upper() if word.isalpha() else word


MEMORY = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" segtype="sentence"/><body>
  <tu>
    <tuv xml:lang="de"><seg>Hund</seg></tuv>
    <tuv xml:lang="en-US"><seg>The <hi>old</hi> dog<ph x="1">{{b}}</ph></seg></tuv>{one}
  </tu>
  <tu><tuv xml:lang="en"><seg>Yes</seg></tuv><tuv xml:lang="FR-ca"><seg>Oui</seg></tuv></tu>
  <tu srclang="de"><tuv xml:lang="en"><seg>Dog</seg></tuv><tuv xml:lang="DE"><seg>Hund</seg></tuv>{two}</tu>
</body></tmx>"""  # noqa: E501


def test_units_of_memories_get_a_variant():
    text = MEMORY.format(one="", two="").replace('<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n', "")
    expected = MEMORY.format(
        one='\n    <tuv xml:lang="fr" creationid="MT"><seg>THE <hi>OLD</hi> DOG<ph x="1">{b}</ph>'
        "</seg></tuv>",
        two='<tuv xml:lang="fr" creationid="MT"><seg>HUND</seg></tuv>',
    ).replace('<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n', "")
    assert translate(read(text, ".tmx")).decode() == expected
    assert read(expected, ".tmx").texts == []
    assert keep(read(expected, ".tmx")).decode() == expected


def test_memories_may_name_their_definition():
    text = MEMORY.format(one="", two="")
    assert translate(read(text, ".tmx")).decode().startswith(text[:80])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<xliff>", "the file is wrong or hostile XML"),
        ('<!DOCTYPE x [<!ENTITY a "aa">]><xliff>&a;</xliff>', "the file is wrong or hostile XML"),
        ("<a/>", "the file has no element “xliff”"),
        (
            '<xliff version="1.2"><file target-language="de"/></xliff>',
            "the file is for translations into “de”, not “fr”; choose that language, or remove "
            "target-language",
        ),
        (
            '<xliff version="2.0" trgLang="de"/>',
            "the file is for translations into “de”, not “fr”; choose that language, or remove trg",
        ),
        (f"{'<a>' * 300}{'</a>' * 300}", "more than 200 elements deep"),
    ],
)
def test_wrong_files_are_refused(text, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read(text)
    assert caught.value.kind == "bad_request"


def test_characters_that_xml_forbids_are_left_out():
    text = '<xliff version="1.2"><trans-unit id="1"><source>dog</source></trans-unit></xliff>'
    written = read(text).write([("a\x01b\uffff", ())])
    assert ElementTree.fromstring(written).find("trans-unit/target").text == "ab"
