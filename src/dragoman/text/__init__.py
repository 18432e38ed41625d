"""From raw text to subword ids and back: normalisation, subwords, sentences."""
