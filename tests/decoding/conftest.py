"""Model folders for the compiled engine, and its precisions."""

from dataclasses import replace

import pytest
import torch
from tests.decoding.engines.cuda.test_rebuilt_transformer import SMALL

from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.models.build import build_model
from dragoman.options import to_plain
from dragoman.weights import vocabulary_of, write_model


@pytest.fixture(params=["int8", "float32"])
def precision(request):
    return request.param


@pytest.fixture
def make_folder(tmp_path, vocabularies):
    def make(**changes):
        torch.manual_seed(4)
        options = replace(SMALL, **changes)
        folder = ModelFolder(
            path=tmp_path / "model",
            config={"model": to_plain(options)},
            options=options,
            vocabularies=vocabularies,
            facts=Facts(weights="best"),
        )
        model = build_model(options, vocabulary_of(vocabularies)).eval()
        with torch.no_grad():
            for each in model.parameters():
                if each.dim() == 1:
                    torch.nn.init.normal_(each, mean=float(each.mean()), std=0.3)
            model.output.words.mul_(2.0)  # clear choices
        write_model(folder.path, folder, model)
        return read_folder(folder.path)

    return make
