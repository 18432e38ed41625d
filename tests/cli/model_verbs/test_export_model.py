"""The verb “export”."""

import pytest

from dragoman.cli.command import main
from dragoman.cli.model_verbs.export_model import FORMATS, QUANTISATIONS


def complaint_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_every_quantisation_is_ctranslate2s():
    from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

    assert set(QUANTISATIONS) == set(ACCEPTED_MODEL_TYPES)


@pytest.mark.parametrize("to", FORMATS)
def test_export(trained, make_model, vocabularies, tmp_path, capsys, to):
    out = tmp_path / "out.argosmodel"
    if to in ("marian", "marian-bin", "bergamot"):
        width = {"model_dim": 64, "feed_forward_dim": 64}  # Bergamot's matrices have multiples
        trained = make_model(vocabularies, positions="marian", **width)
    extra = [] if to in ("huggingface", "marian", "bergamot") else ["--quantisation", "int8"]
    main(["export", str(trained), "--to", to, str(out), *extra])
    assert capsys.readouterr().out == f"{out}\n"
    assert out.is_file() == (to == "argos")


@pytest.mark.parametrize(
    ("to", "flags"),
    [
        ("huggingface", ["--quantisation", "int8"]),
        ("huggingface", ["--source-language", "de"]),
        ("ctranslate2", ["--package-version", "2.0"]),
    ],
)
def test_flags_that_mean_nothing(trained, tmp_path, capsys, to, flags):
    message = complaint_of(capsys, "export", trained, "--to", to, tmp_path / "out", *flags)
    assert f"{flags[0]} means nothing with --to {to}; leave it out" in message
