#!/bin/sh
# The demonstration of “make demo”: from nothing to a translator, its score and its attention.
set -eu
say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

rm -rf demo

say "1. Make a French–English corpus with the built-in grammar (20 seconds)."
show dragoman data builtin --pair fr-en --sentences 30000 --out demo/fr-en > demo.log
