"""Translate lines and show the two best of each: python examples/translate.py MODEL < TEXT."""

import sys

import dragoman


def main(model: str, lines: list[str]) -> None:
    """Print the best translation of each line, its score, and the next best."""
    translator = dragoman.load(model)
    for line, best in zip(lines, translator.translate_all(lines, num_best=2), strict=True):
        print(f"{line}\n  {best.score:6.2f}  {best.text}")
        for other in best.alternatives:
            print(f"  {other.score:6.2f}  {other.text}")
        for note in best.notes:
            print(f"  note: {note}")


if __name__ == "__main__":
    main(sys.argv[1], [line.rstrip("\n") for line in sys.stdin])
