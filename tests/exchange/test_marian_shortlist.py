"""Short-lists that Marian wrote: its binary ones are its tables of text, and ours have both."""

import gzip
import json
import random
import struct
import zlib
from pathlib import Path

import pytest

from dragoman.cli.command import main
from dragoman.decoding.search.shortlist import ShortList
from dragoman.errors import FolderError
from dragoman.exchange import marian_shortlist
from dragoman.exchange.marian import import_marian
from dragoman.exchange.marian_shortlist import find_short_list, read_short_list
from dragoman.folder import read_folder

STUDENT = Path(__file__).parent / "marian_binaries" / "student"
BINARY, TEXT = STUDENT / "lex.s2t.bin", STUDENT / "lex.s2t.gz"
EXPECTED = json.loads((STUDENT / "expected.json").read_text(encoding="utf-8"))
NUM_FREQUENT, NUM_LIKELY = 10, 25  # as make_marian_binaries.py says
NUM_MUTATIONS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("short-list") / "model"
    import_marian(STUDENT, path)
    return read_folder(path)


def marians_names(folder):
    """Marian's words by its ids, and for each of our ids Marian's: here both are in one order."""
    names = folder.vocabularies.source.pieces(range(len(folder.vocabularies.source)))
    names[:3] = "</s>", "<unk>", "<pad>"
    return [*names[:2], *names[3:], names[2]], [0, 1, len(names) - 1, *range(2, len(names) - 1)]


def read(path, folder):
    names, order = marians_names(folder)
    return read_short_list(path, [names, names], [order, order], folder.vocabularies)


def expected_words(folder, sentence):
    """By the definition: the first words, those of the table, and the source's own."""
    names, order = marians_names(folder)
    table: dict[int, dict[int, float]] = {}
    ids = {name: i for i, name in enumerate(names)}
    for line in gzip.decompress(TEXT.read_bytes()).decode().splitlines():
        target, source, probability = line.split(" ")
        row = table.setdefault(ids.get(source, 1), {})
        row[ids.get(target, 1)] = -float(probability)
    found = set(range(NUM_FREQUENT)) | {order[word] for word in sentence}
    for word in sentence:
        row = table.get(order[word], {})
        found |= set(sorted(row, key=lambda target: (row[target], target))[:NUM_LIKELY])
    never = {ids["<unk>"], ids["<pad>"]}
    return {order.index(word) for word in found - never}


def test_a_binary_short_list_is_the_table_that_it_was_made_from(folder):
    short_list = read(BINARY, folder)
    for text in ("Les filles dormiront.", "Tu es triste.", "L’homme a acheté du très bon vin."):
        (sentence,) = folder.vocabularies.source.encode([text])
        assert set(short_list.words_of(sentence)) == expected_words(folder, sentence)


def test_the_table_itself(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(marian_shortlist, "NUM_LIKELY", NUM_LIKELY)
    monkeypatch.setattr(marian_shortlist, "NUM_FREQUENT", NUM_FREQUENT)
    plain = tmp_path / "lex.s2t"
    plain.write_bytes(gzip.decompress(TEXT.read_bytes()))
    (sentence,) = folder.vocabularies.source.encode(["Tu es triste, mais ton père est heureux."])
    for path in (TEXT, plain):
        found = set(read(path, folder).words_of(sentence))
        assert found == expected_words(folder, sentence)


def test_what_lies_beside_a_model_is_taken(folder, tmp_path, capsys):
    assert find_short_list(STUDENT) == BINARY
    assert find_short_list(tmp_path) is None
    (tmp_path / "lex.a.s2t.gz").touch()
    assert find_short_list(tmp_path) == tmp_path / "lex.a.s2t.gz"
    (tmp_path / "lex.b.s2t.gz").touch()
    with pytest.raises(FolderError, match=r"has 2 short-lists .*; name one with --short-list"):
        find_short_list(tmp_path)
    own = ShortList.read(folder)
    (sentence,) = folder.vocabularies.source.encode(["Tu es triste."])
    assert set(own.words_of(sentence)) == set(read(BINARY, folder).words_of(sentence))
    words = ["import", str(STUDENT / "model.bin"), str(tmp_path / "model")]
    main([*words, "--short-list", str(TEXT)])
    capsys.readouterr()
    longer = ShortList.read(read_folder(tmp_path / "model")).words_of(sentence)
    assert len(longer) > len(own.words_of(sentence))


def test_translations_by_a_short_list(folder, tmp_path, capsys):
    """Where each word of a translation is on the list, it is what it is without the list."""
    source = tmp_path / "text"
    source.write_text("".join(f"{text}\n" for text in EXPECTED["texts"]), encoding="utf-8")
    freely, listed = [], []
    for found, flags in ((freely, []), (listed, ["--short-list"])):
        main(["translate", str(folder.path), str(source), "--beam-size=1", *flags])
        found += capsys.readouterr().out.splitlines()
    sources, targets = (
        side.encode(lines)
        for side, lines in zip(folder.vocabularies, (EXPECTED["texts"], freely), strict=True)
    )
    short_list = ShortList.read(folder)
    is_possible = [
        set(target) <= set(short_list.words_of(source))
        for source, target in zip(sources, targets, strict=True)
    ]
    assert 5 < sum(is_possible) < len(freely)
    for one, other, possible in zip(freely, listed, is_possible, strict=True):
        assert one == other or not possible


def message_of(contents, folder, tmp_path):
    path = tmp_path / "lex.s2t.bin"
    path.write_bytes(contents)
    with pytest.raises(FolderError) as caught:
        read(path, folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


@pytest.mark.parametrize(
    ("place", "kind", "value", "message"),
    [
        (8, "<Q", 1, "its checksum is another"),
        (16, "<Q", 1 << 40, "1,099,511,627,776 frequent"),
        (24, "<Q", 1 << 40, "1,099,511,627,776 likely ones"),
        (32, "<Q", 1 << 60, "offsets and"),
        (40, "<Q", 1 << 60, "words announced"),
        (48, "<Q", 7, "its offsets do not rise"),
        (56, "<Q", 1 << 40, "its offsets do not rise"),
        (-4, "<I", 100, "the word 100"),
    ],
)
def test_what_is_damaged(place, kind, value, message, folder, tmp_path):
    raw = bytearray(BINARY.read_bytes())
    struct.pack_into(kind, raw, place % len(raw), value)
    assert message in message_of(raw, folder, tmp_path)
    assert "cut short" in message_of(raw[:20], folder, tmp_path)


def test_a_short_list_of_another_model(folder, tmp_path):
    raw = bytearray(BINARY.read_bytes())
    num_offsets = struct.unpack_from("<Q", raw, 32)[0]
    struct.pack_into("<Q", raw, 32, num_offsets + 1)
    raw[-4:] = struct.pack("<Q", 0) + raw[-4:]
    message = message_of(raw, folder, tmp_path)
    assert "101 source words" in message
    assert "where the vocabularies have 100 and 100" in message


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"a b\n", "line 1: is not “target source probability”"),
        ("a b c\n".encode("utf-16"), "codec can't decode"),
        (b"\x1f\x8bnothing", "is not packed by gzip as it seems"),
        (gzip.compress(b"\0" * 10_000), "has over 5,000 bytes, more than belong there"),
        (b"\0" * 10_000, "has over 5,000 bytes, more than belong there"),
    ],
)
def test_tables_that_are_damaged(contents, message, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(marian_shortlist, "MOST_FILE_BYTES", 5_000)
    assert message in message_of(contents, folder, tmp_path)


def test_a_file_that_is_not_there(folder, tmp_path):
    with pytest.raises(FolderError, match="cannot be read"):
        read(tmp_path / "nothing", folder)


def test_anything_that_happens_to_a_file_is_one_line(folder, tmp_path):
    raw = BINARY.read_bytes()
    chance = random.Random(4)
    for _ in range(NUM_MUTATIONS):
        changed = bytearray(raw)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(8, len(changed))
            changed[place] ^= chance.randrange(1, 256)
        del changed[chance.choice([len(raw), chance.randrange(len(raw))]) :]
        assert zlib.crc32(changed) != zlib.crc32(raw)
        message_of(changed, folder, tmp_path)


def test_numbers_in_a_table_that_are_none(folder, tmp_path):
    names, _ = marians_names(folder)
    line = f"{names[5]} {names[6]} much\n".encode()
    assert "could not convert string to float" in message_of(line, folder, tmp_path)
