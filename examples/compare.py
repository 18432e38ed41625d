"""Is beam search better than greedy search? python examples/compare.py MODEL SOURCE REFERENCE."""

import sys
from pathlib import Path

import dragoman


def main(model: str, source: Path, reference: Path) -> None:
    """Translate a test set in two ways, score both, and test the difference."""
    systems = {}
    for name, beam_size in (("greedy", 1), ("beam", 4)):
        found = dragoman.evaluate(model, source, reference, search={"beam_size": beam_size})
        print(f"{name}\n{found.in_words()}")
        systems[name] = found.translations
    with reference.open(encoding="utf-8") as lines:
        comparison = dragoman.compare(systems, [line.rstrip("\n") for line in lines])
    print(comparison.in_words())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
