"""Translation by recurrent networks: what the Transformer replaced."""
