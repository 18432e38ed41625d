"""Train a small model on the built-in corpus: python examples/train.py FOLDER [PAIRS] [STEPS]."""

import sys
from pathlib import Path

import dragoman
from dragoman.data.builtin import write_corpus


def main(folder: Path, num_pairs: int, num_steps: int) -> None:
    """Make a French–English corpus, train on it, and translate a sentence."""
    corpus, model = folder / "corpus", folder / "model"
    write_corpus(corpus, languages="fr-en", count=num_pairs, held_out=100, seed=1)
    options = {
        "model": {"model_dim": 128, "num_encoder_layers": 2, "num_decoder_layers": 2},
        "training": {"max_steps": num_steps, "validate_every": num_steps},
    }
    translator = dragoman.train(
        corpus / "train.fr", corpus / "train.en", model, preset="small", options=options
    )
    print(translator.translate("Jane visite l’Afrique en septembre.").text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:] or ("20000", "1000")))
