"""One sentence through a Transformer: what every sub-layer computes, and the code that does it."""
