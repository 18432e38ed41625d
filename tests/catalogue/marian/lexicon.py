"""Write a lexicon of subwords, as Marian converts one: target, source, probability on each line."""

import sys
from collections import Counter
from itertools import product
from pathlib import Path

import sentencepiece

subwords = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in sys.argv[2:]]
pairs, sources = Counter(), Counter()
for lines in zip(*sides, strict=True):
    source, target = (set(subwords.encode(line, out_type=str)) for line in lines)
    pairs.update(product(target, source))
    sources.update(source)
for (target, source), count in sorted(pairs.items()):
    if count / sources[source] > 0.05:
        print(target, source, f"{count / sources[source]:.3f}")
