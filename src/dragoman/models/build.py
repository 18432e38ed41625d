"""From options to a model."""

from torch import nn

from dragoman.errors import OptionError
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer


def build_model(options: TransformerOptions, vocabulary: Vocabulary) -> Transformer:
    """Build a model with fresh weights.

    Parameters
    ----------
    options : TransformerOptions
        Its family and shape.
    vocabulary : Vocabulary
        Its subwords.

    Returns
    -------
    Transformer
        The model, on the CPU.
    """
    sizes = (vocabulary.source_size, vocabulary.target_size)
    if options.tied_embeddings == "all" and sizes[0] != sizes[1]:
        raise OptionError(
            f"model.tied_embeddings is “all”, but the vocabularies have {sizes[0]} and {sizes[1]} "
            "subwords; give --tied-embeddings target, or --joint"
        )
    match options:
        case TransformerOptions():
            return Transformer(options, vocabulary)


def count_parameters(model: nn.Module) -> int:
    """Count the numbers that training may change.

    Parameters
    ----------
    model : nn.Module
        The model.

    Returns
    -------
    int
        Each tied matrix counted once.
    """
    return sum(parameter.numel() for parameter in model.parameters())
