"""Refuse models that other toolkits cannot represent, before anything is written."""

from collections.abc import Iterator
from pathlib import Path

from dragoman.errors import FolderError
from dragoman.folder import ModelFolder
from dragoman.models.families import ModelOptions
from dragoman.models.options import TransformerOptions
from dragoman.text.subwords import Subwords


def check_for_huggingface(folder: ModelFolder) -> TransformerOptions:
    """Refuse a model that MarianMT cannot represent."""
    options = _check_transformer(folder, "Hugging Face's MarianMT")
    _refuse(folder.path, "Hugging Face's MarianMT", _beyond_marian(options))
    return options


def check_for_ctranslate2(folder: ModelFolder) -> TransformerOptions:
    """Refuse a model that CTranslate2 cannot run."""
    options = _check_transformer(folder, "CTranslate2")
    kind = options.positions
    beyond = (
        [f"“{kind}” positions"] if kind in ("normalised", "rotary", "alibi", "relative") else []
    )
    _refuse(folder.path, "CTranslate2", iter(beyond))
    return options


def check_for_marian(folder: ModelFolder) -> TransformerOptions:
    """Refuse a model that Marian cannot run."""
    options = _check_transformer(folder, "Marian", takes_cells=True)
    beyond = []
    if options.positions not in ("marian", "none"):
        beyond.append(f"“{options.positions}” positions (train with --positions marian)")
    if options.feed_forward not in ("relu", "swish", "gelu"):
        beyond.append(f"the activation “{options.feed_forward}”")
    _refuse(folder.path, "Marian", iter(beyond))
    return options


def check_new(out: Path) -> None:
    """Refuse an output path that exists."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderError(f"{out}: already holds something; name a new place")


def subwords_of(folder: ModelFolder) -> tuple[Subwords, Subwords]:
    """Return a model's SentencePiece models."""
    source, target = folder.vocabularies
    assert isinstance(source, Subwords)
    assert isinstance(target, Subwords)
    return source, target


def _check_transformer(
    folder: ModelFolder, tool: str, *, takes_cells: bool = False
) -> TransformerOptions:
    """Refuse features that no toolkit supports, or none but Marian."""
    _refuse(folder.path, tool, _beyond_both(folder, folder.options, takes_cells))
    assert isinstance(folder.options, TransformerOptions)
    return folder.options


def _refuse(path: Path, tool: str, obstacles: Iterator[str]) -> None:
    found = next(obstacles, None)
    if found is not None:
        raise FolderError(f"{path}: has {found}, which {tool} cannot represent; nothing is written")


def _beyond_both(
    folder: ModelFolder, options: ModelOptions, takes_cells: bool = False
) -> Iterator[str]:
    """List features that neither toolkit supports."""
    if not all(isinstance(each, Subwords) for each in folder.vocabularies):
        yield "a closed vocabulary of words"
    if not isinstance(options, TransformerOptions):
        yield f"a model of the family “{options.family}”"
        return
    if options.decoder_attention == "feedback":
        yield "feedback memory"
    for kind in (options.encoder_attention, options.decoder_attention):
        if kind != "full" and not (kind == "ssru" and takes_cells):
            yield f"“{kind}” attention"
    if options.num_experts is not None:
        yield "a mixture of experts"
    if not options.residual:
        yield "no residual connections"
    if not options.decoder_mask:
        yield "a decoder without a mask"
    if options.norm.startswith("batch"):
        yield "batch normalisation"
    for name, dim in (("key_dim", options.head_key_dim), ("value_dim", options.head_value_dim)):
        if dim * options.num_heads != options.model_dim:
            yield f"heads of another width than model_dim / num_heads ({name} {dim})"


def _beyond_marian(options: TransformerOptions) -> Iterator[str]:
    """List features that CTranslate2 supports but MarianMT does not."""
    if options.norm_position == "pre":
        yield "norms before the sub-layers (pre-norm)"
    if options.norm == "rms":
        yield "RMS norms"
    if options.feed_forward in ("swiglu", "geglu"):
        yield f"gated feed-forward layers ({options.feed_forward})"
    if options.positions not in ("sinusoidal", "marian"):
        yield f"“{options.positions}” positions"
