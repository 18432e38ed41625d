"""Rules by element for HTML, XML and office documents: inline, break, opaque, subflow."""

from dataclasses import dataclass, replace


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
        "office:scripts office:styles office:automatic-styles office:master-styles "
        "office:font-face-decls office:settings text:tracked-changes text:sequence-decls "
        "text:page-number text:page-count text:date text:time text:bookmark-ref "
        "text:reference-ref text:note-ref text:note-citation text:sequence text:sequence-ref "
        "text:ruby-text office:binary-data dc:creator dc:date meta:creator-initials svg:title "
        "svg:desc"
    ),
    subflows=_names("text:note office:annotation draw:frame"),
    spaces=_names("text:s"),
    text_holders=_names("text:p text:h text:span text:a text:ruby-base text:meta text:meta-field"),
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
)

PRESENTATION = replace(
    WORD,
    inline=_names("a:r a:t a:rPr"),
    opaque=_names("a:pPr a:rPr a:endParaRPr a:bodyPr a:lstStyle p:spPr p:nvSpPr a:fld m:oMath"),
    subflows=frozenset(),
    text_holders=_names("a:t"),
)


def rules_of_xml(
    *, splitting_tags: frozenset[str], inline_tags: frozenset[str], finds_outline: bool
) -> TagRules:
    """Make the rules for XML of an unknown vocabulary."""
    return TagRules(
        is_xml=True, breaks=splitting_tags, inline=inline_tags, finds_outline=finds_outline
    )
