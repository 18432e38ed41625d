#!/bin/sh
# What “make demo” runs: from nothing to a translator, its score and a picture of its attention.
# Every command is shown before it runs; you can type the same ones.
set -eu

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
run() {  # show a command, then run it
    {
        printf '\033[36m$'
        for word in "$@"; do
            case $word in *[!A-Za-z0-9/._,-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
        done
        printf '\033[0m\n'
    } >&2
    "$@"
}
keep() {  # run a command, keep what it says in a file, and show it
    file=$1
    shift
    run "$@" > "$file"
    cat "$file"
}

rm -rf demo
mkdir demo

step "0. Real text, by one of the small models that come along."
run tar -xf models/de-en.tar.xz -C demo
run head -n 1 examples/everyday.de
run dragoman translate demo/de-en examples/everyday.de

step "1. Sentence pairs. The built-in grammar makes French–English text to learn from."
run dragoman data builtin --pair fr-en --sentences 30000 --held-out 500 --out demo/data/fr-en
run head -n 3 demo/data/fr-en/train.fr demo/data/fr-en/train.en

step "2. Train a small Transformer on them in a minute and a half."
run dragoman train --source demo/data/fr-en/train.fr --target demo/data/fr-en/train.en \
    --valid-source demo/data/fr-en/valid.fr --valid-target demo/data/fr-en/valid.en \
    --max-minutes 1.5 --out demo/fr-en

step "3. Score it on sentences that it has never seen."
keep demo/scores.txt dragoman evaluate demo/fr-en --source demo/data/fr-en/test.fr \
    --reference demo/data/fr-en/test.en --metrics bleu chrf

step "4. Translate. The sentence of the lecture notes was kept out of training."
echo "Jane visite l’Afrique en septembre." > demo/jane.txt
run cat demo/jane.txt
keep demo/jane.translated.txt dragoman translate demo/fr-en demo/jane.txt

step "5. The other notes ask: this cat is very large → este gato es muy …? Train English–Spanish."
run dragoman data builtin --pair en-es --sentences 15000 --held-out 200 --out demo/data/en-es
run dragoman train --source demo/data/en-es/train.en --target demo/data/en-es/train.es \
    --valid-source demo/data/en-es/valid.en --valid-target demo/data/en-es/valid.es \
    --max-minutes 0.6 --out demo/en-es
echo "this cat is very large" > demo/cat.txt
keep demo/cat.translated.txt dragoman translate demo/en-es demo/cat.txt --prefix "este gato es muy"

step "6. See what the attention heads look at."
run dragoman look demo/fr-en "Jane visite l’Afrique en septembre." --out demo/attention.png --kind cross
run dragoman look demo/fr-en "Jane visite l’Afrique en septembre." --out demo/attention.html

step "Done. What to do next:"
cat <<'TEXT'
  Open demo/attention.png (or demo/attention.html in a browser): each row is a word being
  written, each column a word being read; the darker a cell, the more the head looks there.

  With your own two files, one sentence a line, line n of one translating line n of the other:

    .venv/bin/dragoman train --source my.de --target my.en --out my-model
    .venv/bin/dragoman translate my-model < text.de > text.en
    .venv/bin/dragoman evaluate my-model --source test.de --reference test.en
TEXT
