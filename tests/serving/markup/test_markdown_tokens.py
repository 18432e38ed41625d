import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.work import grows_linearly

from dragoman.serving.markup.markdown_tokens import (
    decode_markdown,
    encode_markdown,
    split_markdown,
)
from dragoman.serving.markup.markup import parse_tokens
from dragoman.serving.markup.tag_rules import MARKDOWN

PAGE = """---
title: The old dog
tags: [a, b]
---

The *old* dog
=============

> A **small [house](http://x.y/z(1) "Title") sees** `the dog`
> in the garden. \x20
> New &amp; line \\*here\\*. See <https://x.y> or https://a.b/c_d.

- [ ] one ![alt text](img/the_dog.png) end
- two[^1] [ref][] and [ref] and [other][ref] :smile:

| the dog | a \\| b |
|---|:-:|
| ~~small~~ | *tree* |

```python
the dog
```

<div>the dog</div>

    code the dog

[ref]: http://the.dog/ "The dog"
[^1]: The note.

> [!NOTE]
> A {{ name }} here.

Last <b>house</b><br>line _garden_ \\
end {#the-end}

1. ## Heading two ##
"""
TRANSLATED = """---
title: The old dog
tags: [a, b]
---

THE *OLD* DOG
=============

> A **SMALL [HOUSE](http://x.y/z(1) "Title") SEES** `the dog`
> IN THE GARDEN. \x20
> NEW & LINE \\*HERE\\*. SEE <https://x.y> OR https://a.b/c_d.

- [ ] ONE ![ALT TEXT](img/the_dog.png) END
- TWO[^1] [REF][ref] AND [REF][ref] AND [OTHER][ref] :smile:

| THE DOG | A \\| B |
|---|:-:|
| ~~SMALL~~ | *TREE* |

```python
the dog
```

<div>the dog</div>

    code the dog

[ref]: http://the.dog/ "The dog"
[^1]: THE NOTE.

> [!NOTE]
> A {{ name }} HERE.

LAST <b>HOUSE</b><br>LINE _GARDEN_ \\
END {#the-end}

1. ## HEADING TWO ##
"""
TEXTS = [
    "The old dog",
    "A small house sees in the garden.",
    "New & line *here*. See or .",
    "one end",
    "alt text",
    "two ref and ref and other",
    "the dog",
    "a | b",
    "small",
    "tree",
    "The note.",
    "A here.",
    "Last house",
    "line garden",
    "end",
    "Heading two",
]


def translate(text, change):
    """Translate word by word, with the alignment of each."""
    marked = parse_tokens(list(split_markdown(text)), MARKDOWN)
    translations = []
    for segment in marked.segments:
        spans, written = [], ""
        for match in re.finditer(r"\S+", segment):
            written += " " if written else ""
            word = change(match.group())
            spans.append((*match.span(), len(written), len(written) + len(word)))
            written += word
        translations.append((written, spans))
    return marked.rebuild(translations)


def test_prose_is_translated_and_all_else_is_as_it_was():
    marked = parse_tokens(list(split_markdown(PAGE)), MARKDOWN)
    assert marked.segments == TEXTS
    assert translate(PAGE, str.upper) == TRANSLATED


PIECES = [
    *("a", "Bc", " ", "  ", "\n", "\n\n", "\n> ", "\n- ", "\n1. ", "# ", "*", "**", "_", "`", "``"),
    *(
        "[",
        "]",
        "(",
        ")",
        "![",
        "](x)",
        "|",
        "\n|-|-|\n",
        "<b>",
        "</b>",
        "<br>",
        "<!--",
        "-->",
        "~~",
    ),
    *(
        "\\",
        "&amp;",
        "&",
        "<",
        ">",
        "<http://a.b>",
        "---",
        "```",
        "\t",
        "    ",
        "\r\n",
        "{#i}",
        "!",
    ),
    *("[^1]", "é", "日本", "="),
]
PAGES = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@settings(max_examples=300)
@given(PAGES)
def test_tokens_are_the_text(text):
    assert "".join(token.raw for token in split_markdown(text)) == text


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab *_`[]()<>&;#+-=.1~|\\!:"), max_size=20))
@example("1. a")
@example("a\\")
def test_written_text_is_text_again(text):
    text = text.strip() or "a"
    paragraph = (
        MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(encode_markdown(text))
    )
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert paragraph == f"<p>{plain}</p>\n"
    assert decode_markdown(encode_markdown(text)) == text


@pytest.mark.parametrize(
    "page",
    [
        "**Name** - the dog",
        "a *b* c\n- d\n  e",
        "| a | b |\n|---|---|\n| c \\| d | e |",
        "1) a\n   b\n\n   > c *d\n   > e* f",
        "[![a](b.png)](c.md) d",
        '[a *b*](c "d") and ![e **f**](g)',
        "a  \nb\\\nc",
        "Hello! [a](b)",
        "\ta\n\n- b\n\n\tc\n\td",
    ],
)
def test_what_stays_the_same_looks_the_same(page):
    assert translate(page, str) == page
    assert translate(page.replace("\n", "\r\n"), str) == page.replace("\n", "\r\n")


@pytest.mark.parametrize("piece", ["[", "*a ", "`", "|", "> ", "{{", "[^", "https://", "!["])
def test_time_is_linear(piece):
    assert grows_linearly(lambda size: list(split_markdown(piece * (size // len(piece)))), 3000)
