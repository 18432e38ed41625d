"""Spreadsheets: what in their parts is no text though it looks like one."""

import re
from collections.abc import Mapping, Sequence

from dragoman.serving.markup.markup_tokens import Token, decode_xml, read_attributes


def read_table_names(parts: Mapping[str, bytes]) -> frozenset[str]:
    """Read the names of columns of tables: they must stay the texts of their first cells."""
    text = "\n".join(
        content.decode("utf-8", "replace")
        for name, content in parts.items()
        if name.lower().startswith("xl/tables/")
    )
    tags = re.findall(r"<(?:\w+:)?tableColumn\s[^>]*+>", text)
    return frozenset(read_attributes(each).get("name", "") for each in tags)


def prepare_cells(tokens: Sequence[Token], kept: frozenset[str]) -> list[Token]:
    """Keep spaces of runs, and whole those texts that are names of columns of tables."""
    prepared = list(tokens)
    begin = 0
    for place, token in enumerate(tokens):
        name = token.name.removeprefix("x:")
        if name in ("si", "is") and token.kind == "start":
            begin = place
        elif name in ("si", "is") and token.kind == "end":
            texts = [at for at in range(begin, place) if tokens[at].kind == "text"]
            whole = "".join(tokens[at].raw for at in texts)
            if decode_xml(whole).strip() in kept:
                for at in texts:
                    prepared[at] = tokens[at]._replace(kind="other")
        is_in_run = tokens[place - 1].name.removeprefix("x:") in ("r", "rPr")
        if name == "t" and token.kind == "start" and is_in_run and "xml:space" not in token.raw:
            prepared[place] = token._replace(raw=f'{token.raw[:-1]} xml:space="preserve">')
    return prepared
