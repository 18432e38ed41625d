"""Language marks of markup: where the source language is named, the target language is put."""

import re

from dragoman.serving.markup.markup_tokens import split_html

_TAG = re.compile(r"<[^\W\d][^<>]*>")
_ATTRIBUTE = re.compile(
    r"""(\s(?:(?:xml:)?lang|fo:language)\s*=\s*["']?|<w:(?:lang|themeFontLang)\s[^<>]{0,200}?\bw:val=")"""
    r"""([a-zA-Z]{2,8}(?:[-_]\w{1,8})*)(?=["'\s/>])((?:["']\s+fo:country=["']\w*)?)"""
)
_ELEMENT = re.compile(r"(<dc:language(?:\s[^<>]*)?>\s*)([a-zA-Z]{2,8}(?:[-_]\w{1,8})*)(?=\s*</)")


def mark_languages(xml: str, source: str, target: str) -> str:
    """Replace the language in the marks of XML: lang, w:lang, fo:language, dc:language."""

    def replace(match: re.Match[str]) -> str:
        country = match.group(3) if match.re is _ATTRIBUTE else ""
        if _primary(match.group(2)) != _primary(source):
            return match.group()
        return match.group(1) + target + re.sub(r"\w+\Z", "none", country)

    marked = _TAG.sub(lambda tag: _ATTRIBUTE.sub(replace, tag.group()), xml)
    return _ELEMENT.sub(replace, marked)


def mark_page(page: str, source: str, target: str) -> str:
    """Replace the language in the tags of a web page, but not in its scripts."""
    return "".join(
        mark_languages(token.raw, source, target) if token.kind in ("start", "empty") else token.raw
        for token in split_html(page)
    )


def _primary(code: str) -> str:
    return re.split("[-_]", code)[0].lower()
