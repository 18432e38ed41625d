"""The tables and claims of the paper and of the notes about it, as experiments to run."""
