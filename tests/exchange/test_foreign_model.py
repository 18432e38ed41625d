"""Whatever file or folder another tool wrote is recognised by its contents and imported."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.exchange.marian_writer import write_marian

from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError, OptionError
from dragoman.exchange.argos import export_argos
from dragoman.exchange.ctranslate2 import export_ctranslate2
from dragoman.exchange.foreign_model import find_kind, import_model
from dragoman.exchange.huggingface import export_huggingface
from dragoman.folder import read_folder

ZIP = Path(__file__).parent / "opus_zip" / "opus1m-2021-02-18.zip"
EXPECTED = json.loads((ZIP.parent / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def opus(tmp_path_factory):
    """Give the model of OPUS-MT's form as a folder of ours."""
    out = tmp_path_factory.mktemp("opus") / "model"
    import_model(ZIP, out)
    return out


@pytest.fixture(scope="module")
def package(tmp_path_factory, make_model, vocabularies):
    path = tmp_path_factory.mktemp("argos") / "translate.argosmodel"
    export_argos(make_model(vocabularies, norm_position="pre"), path, quantisation="int8")
    return path


def unzip(path, out):
    with zipfile.ZipFile(path) as zipped:
        zipped.extractall(out)
    return out


def zip_up(folder, path):
    with zipfile.ZipFile(path, "w") as zipped:
        for each in sorted(folder.rglob("*")):
            zipped.write(each, each.relative_to(folder))
    return path


def refusal(path, tmp_path):
    with pytest.raises(FolderError) as caught:
        import_model(path, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
    assert not list(tmp_path.glob(".out*"))
    return str(caught.value)


def test_kinds(make_model, vocabularies, package, tmp_path):
    path = make_model(vocabularies, attention_bias=True, output_bias=True)
    export_huggingface(path, tmp_path / "hf")
    export_ctranslate2(path, tmp_path / "ct2")
    write_marian(tmp_path / "marian", read_folder(path))
    unnamed = shutil.copy(tmp_path / "marian" / "model.npz", tmp_path / "unnamed")
    (argos,) = unzip(package, tmp_path / "argos").iterdir()
    found = [find_kind(tmp_path / name) for name in ("hf", "ct2", "marian")]
    assert found == ["huggingface", "ctranslate2", "marian"]
    assert [find_kind(each) for each in (argos, Path(unnamed))] == ["argos", "marian"]
    assert [find_kind(each) for each in (package, ZIP)] == ["archive", "archive"]


@pytest.mark.parametrize("target", ["eng", "fra"])
@pytest.mark.parametrize(("kind", "beam"), [("greedy", 1), ("beam", EXPECTED["beam"])])
def test_opus_mt_says_what_marian_says(opus, target, kind, beam):
    translator = Translator.load(opus, "cpu")
    options = translator.options_with(
        {"into": target, "beam_size": beam, "length_penalty": 0.0, "search_again": False}
    )
    found = translator.translate_all(EXPECTED["texts"], options=options)
    pieces = [
        " ".join(translator.folder.vocabularies.target.pieces(each.tokens)).removesuffix(" </s>")
        for each in found
    ]
    assert pieces == EXPECTED[f"{target} {kind}"]


def test_what_a_zip_says_of_itself_is_kept(opus):
    facts = read_folder(opus).facts
    assert facts.source_language == "fr"
    assert facts.target_languages == ["eng", "fra"]
    card = (opus / "README.md").read_text()
    assert "target languages: eng, fra" in card
    assert "--into eng" in card
    assert "Attribution 4.0 International" in card
    assert "* dataset: opus1m" in card
    assert not Path("/tmp/this-must-never-be-run").exists()
    assert {each.name for each in opus.iterdir()} == {
        "README.md", "config.toml", "dragoman.json", "model.safetensors", "source.model",
        "target.model",
    }  # fmt: skip


def test_a_mark_in_the_text_goes_before_each_of_its_sentences(opus):
    translator = Translator.load(opus, "cpu")
    text = " ".join(EXPECTED["texts"][:2])
    into = {name: translator.options_with({"into": name}) for name in ("eng", "fr", "en", "fra")}
    expected = [translator.translate(text, options=into[name]) for name in ("eng", "fra")]
    assert expected[0].text != expected[1].text
    for mark, best in zip(("eng", "fra"), expected, strict=True):
        found = translator.translate(f">>{mark}<< {text}", options=into["eng"])
        assert (found.text, found.score) == (best.text, best.score)
        assert len(found.parts) == 2
    assert translator.translate(text, options=into["en"]).text == expected[0].text
    assert translator.translate(text, options=into["fr"]).text == expected[1].text


def test_target_languages_that_are_missing_or_unknown(opus, trained):
    translator = Translator.load(opus, "cpu")
    with pytest.raises(OptionError) as caught:
        translator.translate("Oui.")
    assert str(caught.value) == (
        "the model has several target languages; choose one with --into, or begin the text with "
        "its mark, as >>eng<<: eng, fra"
    )
    with pytest.raises(OptionError) as caught:
        translator.translate("Oui.", options=translator.options_with({"into": "deu"}))
    assert str(caught.value) == (
        "“deu” is none of the model's target languages; choose one with --into, or begin the text "
        "with its mark, as >>eng<<: eng, fra"
    )
    other = Translator.load(trained, "cpu")
    with pytest.raises(OptionError, match="into is “fra”, but the model has one target language"):
        other.translate("Yes.", options=other.options_with({"into": "fra"}))


def test_alignments_leave_the_mark_out(opus):
    from dragoman.decoding.output.alignments import Aligner

    translator = Translator.load(opus, "cpu")
    texts = EXPECTED["texts"][:4]
    options = translator.options_with({"into": "eng", "beam_size": 1})
    from dragoman.decoding.constraints.constraints import Constraints

    found = translator.translate_all(
        texts, options=options, constraints=Constraints(is_aligned=True)
    )
    links = Aligner.of(translator).align_translations(texts, found)
    for text, best, pairs in zip(texts, found, links, strict=True):
        assert pairs
        assert max(source for source, _ in pairs) < len(text.split())
        assert max(target for _, target in pairs) < len(best.text.split())
        for part in best.parts:
            assert part.attended is not None
            assert part.attended.weights.shape[1] == len(part.attended.source)


def test_a_mark_of_hugging_face_is_the_same(make_model, sentence_pairs, tmp_path):
    """What an import of a MarianMT folder notes is what a zip's does."""
    from dragoman.text.piece_order import order_pieces
    from dragoman.text.subwords import Subwords, train_subwords
    from dragoman.text.vocabulary import Vocabularies

    model = train_subwords([each for pair in sentence_pairs for each in pair], vocabulary_size=350)
    plain = Subwords.from_bytes(model)
    names = [*plain.pieces(range(len(plain))), ">>fra<<", ">>pt_BR<<", ">>formal<<"]
    marked = Subwords.from_bytes(order_pieces(model, names, place="here"))
    path = make_model(Vocabularies(marked, marked), attention_bias=True, output_bias=True)
    export_huggingface(path, tmp_path / "hf")
    import_model(tmp_path / "hf", tmp_path / "out")
    facts = read_folder(tmp_path / "out").facts
    assert facts.target_languages == ["fra", "pt_BR"]
    assert facts.formality == {"more": ">>formal<<"}
    translator = Translator.load(tmp_path / "out", "cpu")
    ids = translator.encode("A house.", translator.options_with({"into": "pt-BR"}))
    source = translator.folder.vocabularies.source
    assert source.pieces(ids[:1]) == ["▁>>pt_BR<<"]
    assert list(ids) == [*source.encode([">>pt_BR<< A house."])[0], source.eos_id]
    both = translator.options_with({"into": "pt-BR", "formality": "more"})
    marked_text = ">>pt_BR<< >>formal<< A house."
    ids = translator.encode("A house.", both)
    assert list(ids) == [*source.encode([marked_text])[0], source.eos_id]


def test_releases_of_2019_are_refused(tmp_path):
    folder = unzip(ZIP, tmp_path / "unzipped")
    for side in ("source", "target"):
        (folder / f"{side}.spm").unlink()
        (folder / f"{side}.bpe").write_text("#version: 0.2\ne s</w>\n")
    message = refusal(zip_up(folder, tmp_path / "opus-2019-12-04.zip"), tmp_path)
    assert message.startswith(f"{tmp_path / 'opus-2019-12-04.zip' / 'source.bpe'}: cuts words by")
    assert message.endswith("get a newer release of this pair, which has source.spm")


def test_an_argos_package(package, own, texts, tmp_path):
    import_model(package, tmp_path / "ours")
    facts = read_folder(tmp_path / "ours").facts
    assert (facts.source_language, facts.target_language) == ("en", "fr")
    assert "English → French, version 1.0 of a package for Argos Translate." in facts.about
    assert "A translation model made with Dragoman." in facts.about
    (folder,) = unzip(package, tmp_path / "unzipped").iterdir()
    (folder / "model" / "source.spm").write_bytes((folder / "sentencepiece.model").read_bytes())
    (folder / "model" / "target.spm").write_bytes((folder / "sentencepiece.model").read_bytes())
    import_model(folder / "model", tmp_path / "bare")
    assert own(tmp_path / "ours").greedy(texts, 20) == own(tmp_path / "bare").greedy(texts, 20)
    import_model(folder, tmp_path / "again", target_language="fr-CA")
    assert read_folder(tmp_path / "again").facts.target_language == "fr-CA"


def test_other_packages_are_refused(package, tmp_path):
    (folder,) = unzip(package, tmp_path / "unzipped").iterdir()
    said = json.loads((folder / "metadata.json").read_text())
    for change, words in (
        ({"type": "sbd"}, "is a package for “sbd”, not for “translate”"),
        ({"target_prefix": "__de__"}, "begins translations with “__de__”"),
        ({"from_code": "../x"}, "from_code is no language code"),
        ({"to_code": None}, "to_code is no language code"),
    ):
        (folder / "metadata.json").write_text(json.dumps(said | change))
        assert words in refusal(folder, tmp_path)
    (folder / "metadata.json").write_text(json.dumps(said))
    (folder / "sentencepiece.model").rename(folder / "bpe.model")
    assert "a list of merges over words that Moses’ tokeniser has cut" in refusal(folder, tmp_path)
    (folder / "bpe.model").unlink()
    assert "has no sentencepiece.model; get the package again" in refusal(folder, tmp_path)


def test_archives_without_a_model(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "song.txt").write_text("la")
    path = zip_up(tmp_path / "folder", tmp_path / "song.zip")
    assert f"{path}: holds no model that can be imported; give a" in refusal(path, tmp_path)
    (tmp_path / "folder" / "model.bin").write_bytes(b"x")
    path = zip_up(tmp_path / "folder", tmp_path / "bad.zip")
    assert f"{path / 'model.bin'}: is no model.bin of CTranslate2" in refusal(path, tmp_path)


def test_a_place_that_is_taken(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FolderError, match="already holds something; name a new place"):
        import_model(ZIP, tmp_path / "mine")
