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

# What a program writes into OpenDocument: dates, numbers, names.
_OPEN_FIELDS = _names(
    "text:page-number text:page-count text:date text:time text:bookmark-ref text:reference-ref "
    "text:note-ref text:sequence text:sequence-ref text:author-name text:author-initials "
    "text:initial-creator text:creator text:title text:subject text:keywords text:description "
    "text:file-name text:template-name text:chapter text:sheet-name text:page-continuation "
    "text:variable-set text:variable-get text:variable-input text:user-field-get "
    "text:user-field-input text:user-defined text:expression text:conditional-text "
    "text:hidden-text text:hidden-paragraph text:drop-down text:measure text:word-count "
    "text:character-count text:paragraph-count text:table-count text:image-count "
    "text:object-count text:editing-cycles text:editing-duration text:creation-date "
    "text:creation-time text:modification-date text:modification-time text:print-date "
    "text:print-time text:printed-by text:bibliography-mark text:database-display "
    "presentation:header presentation:footer presentation:date-time"
)

_OPEN_SHAPES = _names(
    "draw:frame draw:custom-shape draw:rect draw:ellipse draw:circle draw:line draw:polyline "
    "draw:polygon draw:regular-polygon draw:path draw:connector draw:caption draw:measure draw:g "
    "draw:control"
)

OPEN_DOCUMENT = TagRules(
    is_xml=True,
    inline=_names(
        "text:span text:a text:s text:bookmark text:bookmark-start text:bookmark-end "
        "text:reference-mark text:reference-mark-start text:reference-mark-end text:ruby "
        "text:ruby-base text:soft-page-break text:change text:change-start text:change-end "
        "text:note text:meta text:meta-field office:annotation office:annotation-end draw:a "
        "text:ruby-text loext:content-control loext:list-item"
    )
    | _OPEN_FIELDS
    | _OPEN_SHAPES,
    breaks_elsewhere=True,
    opaque=_names(
        "office:scripts office:styles office:automatic-styles office:font-face-decls "
        "office:settings text:tracked-changes text:sequence-decls text:note-citation "
        "text:ruby-text office:binary-data dc:creator dc:date meta:creator-initials"
    )
    | _OPEN_FIELDS,
    subflows=_names("text:note office:annotation") | _OPEN_SHAPES,
    spaces=_names("text:s"),
    text_holders=_names(
        "text:p text:h text:span text:a text:ruby-base text:meta text:meta-field svg:title "
        "svg:desc loext:content-control presentation:header-decl presentation:footer-decl"
    ),
    collapses_space=True,
    attributes=_names(
        "text:a@office:title table:error-message@table:title table:help-message@table:title"
    ),
)

# In a chart, descriptions of cells say of which cells of the sheet they are copies.
OPEN_CHART = replace(
    OPEN_DOCUMENT, text_holders=OPEN_DOCUMENT.text_holders - {"svg:desc", "svg:title"}
)

WORD = TagRules(
    is_xml=True,
    inline=_names(
        "w:r w:t w:rPr w:hyperlink w:ins w:smartTag w:bookmarkStart w:bookmarkEnd w:proofErr "
        "w:commentRangeStart w:commentRangeEnd w:commentReference w:footnoteReference "
        "w:endnoteReference w:del w:drawing w:pict w:object mc:AlternateContent "
        "w:noBreakHyphen w:softHyphen w:lastRenderedPageBreak w:sym w:moveTo w:moveFrom "
        "w:moveFromRangeStart w:moveFromRangeEnd w:moveToRangeStart w:moveToRangeEnd "
        "w:fldSimple w:field w:sdt w:sdtPr w:sdtEndPr w:sdtContent w:customXml w:bdo w:dir "
        "w:permStart w:permEnd w:footnoteRef w:endnoteRef w:annotationRef w:ruby w:rubyPr w:rt "
        "w:rubyBase m:oMath"
    ),
    breaks_elsewhere=True,
    opaque=_names(
        "w:pPr w:rPr w:tblPr w:tblGrid w:trPr w:tcPr w:sectPr w:sdtPr w:sdtEndPr w:del w:moveFrom "
        "w:instrText w:rubyPr w:rt m:oMath m:oMathPara"
    ),
    subflows=_names("w:drawing w:pict w:object mc:AlternateContent"),
    text_holders=_names("w:t"),
    attributes=_names(
        "wp:docPr@descr wp:docPr@title pic:cNvPr@descr pic:cNvPr@title p:cNvPr@descr p:cNvPr@title "
        "xdr:cNvPr@descr xdr:cNvPr@title "
        "v:shape@alt w:hyperlink@w:tooltip"
    ),
    raised=re.compile(r"<w:vertAlign w:val=\"superscript\""),
)

PRESENTATION = replace(
    WORD,
    inline=_names("a:r a:t a:rPr a:fld mc:AlternateContent a14:m m:oMath m:oMathPara"),
    opaque=_names("a:pPr a:rPr a:endParaRPr a:bodyPr a:lstStyle p:spPr a:fld m:oMath m:oMathPara"),
    subflows=_names("mc:AlternateContent"),
    text_holders=_names("a:t p:text"),
    raised=re.compile(r" baseline=\"[1-9]"),
)


CHART = replace(
    PRESENTATION,
    opaque=PRESENTATION.opaque | _names("c:numCache c:numLit numCache numLit"),
    text_holders=_names("a:t c:v v"),
)

BOOK_CONTENTS = TagRules(
    is_xml=True,
    breaks_elsewhere=True,
    opaque=_names("docAuthor ncx:docAuthor"),
    text_holders=_names("text ncx:text dc:title"),
    attributes=_names("reference@title"),
)

_SHEET_HEADS = _names("oddHeader oddFooter evenHeader evenFooter firstHeader firstFooter")
# Names with the prefix “x:” are written by Microsoft's own library.
SPREADSHEET = TagRules(
    is_xml=True,
    inline=_names("r t rPr x:r x:t x:rPr"),
    breaks_elsewhere=True,
    opaque=_names("rPr rPh phoneticPr x:rPr x:rPh x:phoneticPr"),
    text_holders=_names("t x:t") | _SHEET_HEADS | {f"x:{name}" for name in _SHEET_HEADS},
    attributes=_names(
        "dataValidation@prompt dataValidation@prompttitle dataValidation@error "
        "dataValidation@errortitle hyperlink@tooltip"
    ),
)


def rules_of_xml(
    *, splitting_tags: frozenset[str], inline_tags: frozenset[str], finds_outline: bool
) -> TagRules:
    """Make the rules for XML of an unknown vocabulary."""
    return TagRules(
        is_xml=True, breaks=splitting_tags, inline=inline_tags, finds_outline=finds_outline
    )
