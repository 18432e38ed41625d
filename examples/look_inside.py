"""Draw and explain: python examples/look_inside.py MODEL SENTENCE FOLDER [TRANSLATION]."""

import sys
from pathlib import Path

import dragoman


def main(model: str, sentence: str, folder: Path, translation: str | None = None) -> None:
    """Draw what the heads look at, and name the source word that each word depends on most."""
    translator = dragoman.load(model)
    seen = dragoman.look(translator, sentence, translation=translation, kinds=["cross"])
    dragoman.draw(seen, folder / "attention.png")
    found = dragoman.explain(translator, sentence, translation=translation, num_masks=64)
    dragoman.draw(found, folder / "explanation.png")
    print(f"{found.source}\n{found.translation}")
    for word, row in zip(found.target_words, found.rise.values, strict=True):
        print(f"  {word} ← {found.source_words[row.argmax()]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
