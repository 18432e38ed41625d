"""Text to token ids and back: normalisation, subwords, vocabularies, sentence splitting."""
