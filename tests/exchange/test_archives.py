"""Archives of strangers: what is unpacked stays inside, and within limits."""

import gzip
import io
import lzma
import stat
import tarfile
import zipfile

import pytest

from dragoman.errors import FolderError
from dragoman.exchange import archives
from dragoman.exchange.archives import decompress, is_archive, unpack


def make_zip(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, contents in entries:
            zipped.writestr(name, contents)
    return path


def make_tar(path, *entries):
    with tarfile.open(path, "w:gz") as packed:
        for name, contents in entries:
            item = tarfile.TarInfo(name)
            item.size = len(contents)
            packed.addfile(item, io.BytesIO(contents))
    return path


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_files_come_out_as_they_were(tmp_path, make):
    archive = make(tmp_path / "archive", ("a/b.txt", b"one"), ("c.bin", b"two"), ("d/e", b""))
    found = unpack(archive, tmp_path / "out", lambda name: name.parts[0] != "d")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in found] == ["a/b.txt", "c.bin"]
    assert [path.read_bytes() for path in found] == [b"one", b"two"]
    assert not any(path.stat().st_mode & stat.S_IXUSR for path in found)


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "a/../../b", "a\\b", "c:x"])
def test_names_that_lead_outside(tmp_path, make, name):
    archive = make(tmp_path / "archive", (name, b"x"))
    with pytest.raises(FolderError, match="leads outside its folder; nothing is unpacked"):
        unpack(archive, tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == [archive]


def test_links_are_refused(tmp_path):
    archive = tmp_path / "archive"
    entry = zipfile.ZipInfo("model.bin")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    make_zip(archive, (entry, "/etc/passwd"))
    with pytest.raises(FolderError, match=r"“model\.bin” is a link or no plain file"):
        unpack(archive, tmp_path / "out")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        with tarfile.open(archive, "w") as packed:
            item = tarfile.TarInfo("model.bin")
            item.type, item.linkname = kind, "/etc/passwd"
            packed.addfile(item)
        with pytest.raises(FolderError, match=r"“model\.bin” is a link or no plain file"):
            unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("is_wanted", [True, False])
def test_zeros_without_end(tmp_path, monkeypatch, make, is_wanted):
    monkeypatch.setattr(archives, "SLACK", 1000)
    archive = make(tmp_path / "archive", ("zeros", bytes(1_000_000)))
    with pytest.raises(FolderError, match="unpacks to more than 20 times its size; it is no model"):
        unpack(archive, tmp_path / "out", lambda _: is_wanted)


def test_bytes_are_counted_as_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SLACK", 1000)
    archive = make_zip(tmp_path / "archive", ("zeros", bytes(1_000_000)))
    size, said = (1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(size, said))
    with pytest.raises(FolderError):
        unpack(archive, tmp_path / "out")
    there = tmp_path / "out" / "zeros"
    assert not there.exists() or there.stat().st_size < 100_000


def test_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    archive = make_zip(tmp_path / "archive", *((f"{index}", b"") for index in range(4)))
    with pytest.raises(FolderError, match="has more than 3 files; get it again"):
        unpack(archive, tmp_path / "out")


def test_one_name_twice(tmp_path):
    archive = make_tar(tmp_path / "archive", ("a", b"1"), ("a", b"2"))
    with pytest.raises(FolderError, match="has “a” twice; get it again"):
        unpack(archive, tmp_path / "out")


def test_encrypted_and_damaged_files(tmp_path):
    archive = make_zip(tmp_path / "archive", ("model.bin", b"something to store" * 9))
    contents = archive.read_bytes()
    place = contents.index(b"PK\x01\x02") + 8
    archive.write_bytes(contents[:place] + b"\x01" + contents[place + 1 :])
    with pytest.raises(FolderError, match="is a link or no plain file"):
        unpack(archive, tmp_path / "out")
    archive.write_bytes(contents[:40] + b"\xff" + contents[41:])
    with pytest.raises(FolderError, match="is no zip or tar archive, or damaged; get it again"):
        unpack(archive, tmp_path / "out")
    archive.write_bytes(b"nothing of the kind")
    with pytest.raises(FolderError, match="is no zip or tar archive, or damaged; get it again"):
        unpack(archive, tmp_path / "out")
    with pytest.raises(FolderError, match=r"cannot be unpacked \(No such file or directory\)"):
        unpack(tmp_path / "none", tmp_path / "out")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_single_files_are_unpacked_by_their_contents(tmp_path, pack):
    packed = tmp_path / "vocab.spm.gz"
    packed.write_bytes(pack(b"contents" * 1000))
    decompress(packed, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"contents" * 1000
    assert not is_archive(packed)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_single_files_that_are_damaged_or_grow_without_end(tmp_path, monkeypatch, pack):
    packed = tmp_path / "model.bin.gz"
    packed.write_bytes(pack(bytes(1_000_000))[:-20])
    with pytest.raises(FolderError, match=r"model\.bin\.gz: is damaged; get it again"):
        decompress(packed, tmp_path / "one")
    monkeypatch.setattr(archives, "SLACK", 1000)
    packed.write_bytes(pack(bytes(1_000_000)))
    with pytest.raises(FolderError, match="unpacks to more than 20 times its size"):
        decompress(packed, tmp_path / "two")


def test_a_gzip_file_of_an_unknown_method(tmp_path):
    packed = tmp_path / "model.tar.gz"
    packed.write_bytes(b"\x1f\x8b\x07" + bytes(20))
    assert not is_archive(packed)
    with pytest.raises(FolderError, match=r"model\.tar\.gz: is damaged; get it again"):
        decompress(packed, tmp_path / "out")
    with pytest.raises(FolderError, match="is no zip or tar archive, or damaged; get it again"):
        unpack(packed, tmp_path / "out")


def test_xz_that_would_take_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_XZ_MEMORY", 1 << 20)
    packed = tmp_path / "model.tar.xz"
    with tarfile.open(packed, "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    with pytest.raises(FolderError, match="or damaged; get it again"):
        unpack(packed, tmp_path / "out")
    monkeypatch.setattr(archives, "MOST_XZ_MEMORY", 1 << 28)
    assert is_archive(packed)
    assert len(unpack(packed, tmp_path / "out")) == 1
