"""Argos Translate installs what is exported and translates with it, without the Internet."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile

import ctranslate2
import pytest
import sentencepiece

from dragoman.errors import FolderError, OptionError
from dragoman.exchange.argos import export_argos
from dragoman.exchange.ctranslate2 import export_ctranslate2

# Argos makes folders where it is imported, and keeps what it has loaded: a process of its own.
SCRIPT = """
import json, pathlib, socket, sys

def refuse(*_, **__):
    raise OSError("there is no Internet here")

socket.socket.connect = socket.create_connection = refuse
from argostranslate import package, translate
package.install_from_path(pathlib.Path(sys.argv[1]))
translation = translate.get_translation_from_codes("en", "fr")
assert "dragoman" not in sys.modules
found = [translation.translate(text) for text in json.loads(sys.argv[2])]
print(json.dumps([found, str(translation.from_lang), str(translation.to_lang)]))
"""
needs_argos = pytest.mark.skipif(
    importlib.util.find_spec("argostranslate") is None, reason="argostranslate is not installed"
)


def translate(package, texts, tmp_path):
    folders = {"HOME": tmp_path, "XDG_DATA_HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path,
               "XDG_CACHE_HOME": tmp_path}  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(package), json.dumps(texts)],
        env=kept
        | {name: str(path) for name, path in folders.items()}
        | {"ARGOS_COMPUTE_TYPE": "float32", "ARGOS_BEAM_SIZE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    return json.loads(done.stdout.splitlines()[-1])


@needs_argos
def test_argos_translates(trained, own, texts, tmp_path):
    export_argos(trained, tmp_path / "model.argosmodel")
    chosen = [texts[0], f"{texts[1]} {texts[0]}"]
    found, source, target = translate(tmp_path / "model.argosmodel", chosen, tmp_path)
    one, other = own(trained).texts(texts[:2])
    assert found == [one, f"{other} {one}"]
    assert (source, target) == ("English", "French")


@needs_argos
@pytest.mark.slow
def test_two_vocabularies(make_model, side_vocabularies, texts, tmp_path):
    path = make_model(side_vocabularies, tied_embeddings="target", output_bias=True)
    export_argos(path, tmp_path / "model.argosmodel")
    found, *_ = translate(tmp_path / "model.argosmodel", texts[:1], tmp_path)
    export_ctranslate2(path, tmp_path / "model")
    source, target = side_vocabularies
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    (best,) = translator.translate_batch([source.pieces(source.encode(texts[:1])[0])], beam_size=1)
    processor = sentencepiece.SentencePieceProcessor(model_proto=target.to_bytes())
    assert found == [processor.decode(best.hypotheses[0])]
    assert set(best.hypotheses[0]) - set(source.pieces(range(len(source))))


def test_what_is_in_a_package(trained, tmp_path):
    package = tmp_path / "model.argosmodel"
    export_argos(trained, package, source_language="de", target_language="xx", version="2.1")
    with zipfile.ZipFile(package) as zipped:
        names = {name.split("/", 1)[1] for name in zipped.namelist()}
        roots = {name.split("/", 1)[0] for name in zipped.namelist()}
        metadata = json.loads(zipped.read("translate-de_xx-2_1/metadata.json"))
        assert zipped.testzip() is None
    assert roots == {"translate-de_xx-2_1"}
    assert names == {"metadata.json", "sentencepiece.model", "minisbd/de.onnx", "README.md",
                     "model/config.json", "model/model.bin",
                     "model/shared_vocabulary.json"}  # fmt: skip
    assert (metadata["from_name"], metadata["to_name"]) == ("German", "xx")
    again = tmp_path / "again.argosmodel"
    export_argos(trained, again, source_language="de", target_language="xx", version="2.1")
    assert again.read_bytes() == package.read_bytes()


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("model.zip", {}, "give a name that ends in .argosmodel"),
        ("m.argosmodel", {"version": "one"}, "--package-version one: give numbers and dots"),
        ("m.argosmodel", {"source_language": "../x"}, "--source-language ../x: give a code"),
    ],
)
def test_what_cannot_be_meant(trained, tmp_path, name, said, message):
    with pytest.raises(OptionError) as caught:
        export_argos(trained, tmp_path / name, **said)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_languages_must_be_known(trained, tmp_path):
    path = shutil.copytree(trained, tmp_path / "model")
    facts = json.loads((path / "dragoman.json").read_text()) | {
        "target_language": None,
        "digest": None,
    }
    (path / "dragoman.json").write_text(json.dumps(facts))
    with pytest.raises(OptionError) as caught:
        export_argos(path, tmp_path / "m.argosmodel")
    assert str(caught.value) == (
        "the model does not say its target language, which Argos must know; give --target-language"
    )


def test_a_file_in_the_way(trained, tmp_path):
    (tmp_path / "m.argosmodel").write_text("mine")
    with pytest.raises(FolderError, match="already holds something"):
        export_argos(trained, tmp_path / "m.argosmodel")
    assert (tmp_path / "m.argosmodel").read_text() == "mine"


def test_a_full_disk_is_told_of_the_package(trained, tmp_path, monkeypatch):
    def fail(folder, out, quantisation):
        out.mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.exchange.argos.write_ctranslate2", fail)
    package = tmp_path / "new" / "m.argosmodel"
    with pytest.raises(FolderError) as caught:
        export_argos(trained, package)
    assert str(caught.value).startswith(f"{package}: cannot be written (No space left on device)")
    assert list(package.parent.iterdir()) == []
