"""Translation by convolutional networks: the Transformer's parallel rivals."""
