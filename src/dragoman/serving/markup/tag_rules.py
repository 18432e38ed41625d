"""Rules by element for HTML, XML and office documents: inline, break, opaque, subflow."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from dragoman.serving.markup.markdown_tokens import (
    BREAK,
    IMAGE,
    decode_markdown,
    encode_markdown,
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, kw_only=True)
class TagRules:
    """Rules for the elements of a document format.

    Parameters
    ----------
    is_xml : bool
        Whether it is XML, in which every element must be closed.
    breaks : frozenset[str]
        Elements at which a sentence ends.
    inline : frozenset[str]
        Elements at which it does not.
    breaks_elsewhere : bool
        Whether it ends at all other elements; otherwise only where `finds_outline` says so.
    finds_outline : bool
        Whether it ends at elements around which there are only other elements.
    opaque : frozenset[str]
        Elements whose content stays as it is.
    subflows : frozenset[str]
        Elements that stand in a sentence but whose content is none of it, and is translated by
        itself: a footnote, a button.
    spaces : frozenset[str]
        Elements that are white space.
    text_holders : frozenset[str]
        The only elements that may have text in them; nothing: all may.
    collapses_space : bool
        Whether white space counts as one space, as in HTML, and line breaks mean nothing.
    attributes : frozenset[str]
        Attributes that people read, of any element (“@alt”) or of one (“track@label”).
    raised : re.Pattern[str] | None
        What tells of an inline element that its text is raised, so that a number in it points to a
        note.
    decode, encode : Callable[[str], str] | None
        How text is read and written; None: as in XML or HTML.
    """

    is_xml: bool
    breaks: frozenset[str] = frozenset()
    inline: frozenset[str] = frozenset()
    breaks_elsewhere: bool = False
    finds_outline: bool = False
    opaque: frozenset[str] = frozenset()
    subflows: frozenset[str] = frozenset()
    spaces: frozenset[str] = frozenset()
    text_holders: frozenset[str] = frozenset()
    collapses_space: bool = False
    attributes: frozenset[str] = frozenset()
    raised: re.Pattern[str] | None = None
    decode: Callable[[str], str] | None = None
    encode: Callable[[str], str] | None = None


HTML = TagRules(
    is_xml=False,
    breaks=_names(
        "address article aside base blockquote body br caption center col colgroup dd details "
        "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 "
        "h6 head header hgroup hr html iframe legend li link main menu meta nav noembed noframes "
        "noscript ol optgroup option p param plaintext pre script search section source style "
        "summary table tbody td template textarea tfoot th thead title tr track ul xmp"
    ),
    opaque=_names(
        "script style xmp iframe noembed noframes plaintext textarea code kbd samp var math svg"
    ),
    subflows=_names("button select object video audio canvas"),
    collapses_space=True,
    raised=re.compile(r"<sup[\s>]", re.IGNORECASE),
)

# Of a document all is translated that is shown; of texts of other programs the attributes stay.
HTML_PAGE = replace(
    HTML,
    breaks=HTML.breaks | {"text", "desc"},
    opaque=(HTML.opaque - {"textarea", "svg"}) | {"metadata"},
    subflows=HTML.subflows | {"svg"},
    attributes=_names(
        "@alt @title @placeholder @aria-label optgroup@label option@label track@label input@value "
        "meta@content"
    ),
)

MARKDOWN = replace(
    HTML,
    subflows=HTML.subflows | {IMAGE},
    spaces=frozenset((BREAK,)),
    decode=decode_markdown,
    encode=encode_markdown,
)

OPEN_DOCUMENT = TagRules(
    is_xml=True,
    inline=_names(
        "text:span text:a text:s text:bookmark text:bookmark-start text:bookmark-end "
        "text:reference-mark text:reference-mark-start text:reference-mark-end text:ruby "
        "text:ruby-base text:soft-page-break text:change text:change-start text:change-end "
        "text:note text:meta text:meta-field office:annotation office:annotation-end draw:frame "
        "draw:a text:page-number text:page-count text:date text:time text:bookmark-ref "
        "text:reference-ref text:note-ref text:sequence text:sequence-ref text:ruby-text"
    ),
    breaks_elsewhere=True,
    opaque=_names(
        "office:scripts office:styles office:automatic-styles office:font-face-decls "
        "office:settings text:tracked-changes text:sequence-decls "
        "text:page-number text:page-count text:date text:time text:bookmark-ref "
        "text:reference-ref text:note-ref text:note-citation text:sequence text:sequence-ref "
        "text:ruby-text office:binary-data dc:creator dc:date meta:creator-initials"
    ),
    subflows=_names("text:note office:annotation draw:frame"),
    spaces=_names("text:s"),
    text_holders=_names(
        "text:p text:h text:span text:a text:ruby-base text:meta text:meta-field svg:title svg:desc"
    ),
    collapses_space=True,
)

WORD = TagRules(
    is_xml=True,
    inline=_names(
        "w:r w:t w:rPr w:hyperlink w:ins w:smartTag w:bookmarkStart w:bookmarkEnd w:proofErr "
        "w:commentRangeStart w:commentRangeEnd w:commentReference w:footnoteReference "
        "w:endnoteReference w:del w:drawing w:pict w:object mc:AlternateContent "
        "w:noBreakHyphen w:softHyphen w:lastRenderedPageBreak w:sym"
    ),
    breaks_elsewhere=True,
    opaque=_names(
        "w:pPr w:rPr w:tblPr w:tblGrid w:trPr w:tcPr w:sectPr w:sdtPr w:sdtEndPr w:del "
        "w:instrText m:oMath m:oMathPara"
    ),
    subflows=_names("w:drawing w:pict w:object mc:AlternateContent"),
    text_holders=_names("w:t"),
    attributes=_names(
        "wp:docPr@descr wp:docPr@title pic:cNvPr@descr pic:cNvPr@title p:cNvPr@descr p:cNvPr@title "
        "v:shape@alt"
    ),
    raised=re.compile(r"<w:vertAlign w:val=\"superscript\""),
)

PRESENTATION = replace(
    WORD,
    inline=_names("a:r a:t a:rPr"),
    opaque=_names("a:pPr a:rPr a:endParaRPr a:bodyPr a:lstStyle p:spPr a:fld m:oMath"),
    subflows=frozenset(),
    text_holders=_names("a:t p:text"),
    raised=re.compile(r" baseline=\"[1-9]"),
)


CHART = replace(
    PRESENTATION,
    opaque=PRESENTATION.opaque | {"c:numCache", "c:numLit"},
    text_holders=_names("a:t c:v"),
)

BOOK_CONTENTS = TagRules(
    is_xml=True,
    breaks_elsewhere=True,
    opaque=_names("docAuthor ncx:docAuthor"),
    text_holders=_names("text ncx:text dc:title"),
)

# Names with the prefix “x:” are written by Microsoft's own library.
SPREADSHEET = TagRules(
    is_xml=True,
    inline=_names("r t rPr x:r x:t x:rPr"),
    breaks_elsewhere=True,
    opaque=_names("rPr rPh phoneticPr x:rPr x:rPh x:phoneticPr"),
    text_holders=_names("t x:t"),
)


def rules_of_xml(
    *, splitting_tags: frozenset[str], inline_tags: frozenset[str], finds_outline: bool
) -> TagRules:
    """Make the rules for XML of an unknown vocabulary."""
    return TagRules(
        is_xml=True, breaks=splitting_tags, inline=inline_tags, finds_outline=finds_outline
    )
