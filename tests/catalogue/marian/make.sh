#!/bin/sh
# How the files beside this script were made: a tiny model of the real Marian (pymarian 1.12.42),
# trained on the built-in corpus for a minute. MARIAN is its command with “train”, “decode”, “convert”.
set -eu
MARIAN=${MARIAN:-pymarian}
here=$(cd "$(dirname "$0")" && pwd)
dragoman data builtin --pair fr-en --sentences 3000 --held-out 20 --out data
$MARIAN train --type transformer -m model.npz -t data/train.fr data/train.en -v vocab.spm vocab.spm \
    --dim-vocabs 300 300 --dim-emb 16 --transformer-dim-ffn 32 --transformer-heads 2 \
    --enc-depth 1 --dec-depth 1 --tied-embeddings-all --transformer-ffn-activation relu \
    --sentencepiece-options="--normalization_rule_name=identity" --after 600u --mini-batch 64 \
    --learn-rate 0.01 --lr-warmup 50 --cpu-threads 1 --seed 1
grep -E '^.{1,40}$' data/test.fr | head -n 6 > lines.fr
$MARIAN decode -m model.npz -v vocab.spm vocab.spm --cpu-threads 1 --beam-size 1 -i lines.fr \
    > lines.en
$MARIAN convert -f model.npz -t model.bin
python "$here/lexicon.py" vocab.spm data/train.fr data/train.en > lexicon.txt
$MARIAN convert --shortlist lexicon.txt 50 50 0 --vocabs vocab.spm vocab.spm --dump-shortlist lex.bin
