"""Errors for people: each becomes one line on the terminal and exit status 2."""


class DragomanError(Exception):
    """Something a person can put right.

    The message is one line. It names the place (file, line or option), what was found there and
    the remedy. Mistakes of the program itself are ordinary exceptions and assertions.
    """


class OptionError(DragomanError):
    """An option, or a combination of options, that cannot be meant."""


class DataError(DragomanError):
    """A text file that cannot be used as it is."""


class FolderError(DragomanError):
    """A model folder or checkpoint that is missing, damaged, foreign or in the way."""


class TrainingError(DragomanError):
    """A training run that cannot go on."""


class DownloadError(DragomanError):
    """A download that fails, or brings something else than was promised."""
