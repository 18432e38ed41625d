"""Options of convolutional models; the defaults are the published shapes."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.errors import OptionError
from dragoman.models.options import TYING, check_counts, check_share, check_tying
from dragoman.options import option, require

MAX_LENGTH_RATIO = 100
MOST_BLOCKS = 1000


class BlockShape(NamedTuple):
    """The shape of one convolutional block."""

    width: int
    kernel_size: int


def parse_blocks(name: str, text: str) -> tuple[BlockShape, ...]:
    """Parse the shapes of a stack of blocks.

    Parameters
    ----------
    name : str
        The option's name, for error messages.
    text : str
        Such as ``9x512k3 2x2048k1``: nine blocks of width 512 and kernel 3, then two more.
    """
    shapes: list[BlockShape] = []
    for part in text.split():
        found = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,5})k([1-9]\d{0,2})", part, re.ASCII)
        if not found:
            raise OptionError(
                f"{name} is “{text}”: “{part}” is no block; write 9x512k3 for nine blocks of "
                "width 512 and kernel size 3"
            )
        count, width, kernel_size = map(int, found.groups())
        shapes += [BlockShape(width, kernel_size)] * count
        if len(shapes) > MOST_BLOCKS:
            raise OptionError(f"{name}: has more than {MOST_BLOCKS} blocks; take fewer")
    if not shapes:
        raise OptionError(f"{name} is empty; write 4x256k3 for four blocks")
    return tuple(shapes)


@dataclass(frozen=True, kw_only=True)
class ConvS2SOptions:
    """Convolutional sequence to sequence learning (Gehring et al., 2017)."""

    family: Literal["convs2s"] = option("convs2s", "the kind of model")
    encoder_blocks: str = option(
        "9x512k3 4x1024k3 2x2048k1", "blocks of the encoder: count x width k kernel size"
    )
    decoder_blocks: str = option(
        "9x512k3 4x1024k3 2x2048k1", "blocks of the decoder, each with its attention"
    )
    model_dim: int = option(768, "width of the word vectors and of what the encoder gives")
    output_dim: int = option(512, "width of what the output layer reads")
    max_positions: int = option(1024, "longest sequence of learned positions")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.2, "dropout on embeddings and on what blocks and output layer read")

    def __post_init__(self) -> None:
        for shape in self.encoder_shapes:
            odd = shape.kernel_size % 2 == 1
            require(odd, "model.encoder_blocks", f"“{self.encoder_blocks}”",
                    "its kernels must be odd, to see as far to both sides")  # fmt: skip
        parse_blocks("model.decoder_blocks", self.decoder_blocks)
        check_counts(self, "model_dim", "output_dim", "max_positions")
        check_share(self, "dropout")
        check_tying(self, embedding_dim=self.model_dim, output_dim=self.output_dim)

    @property
    def encoder_shapes(self) -> tuple[BlockShape, ...]:
        """The shape of each block of the encoder."""
        return parse_blocks("model.encoder_blocks", self.encoder_blocks)

    @property
    def decoder_shapes(self) -> tuple[BlockShape, ...]:
        """The shape of each block of the decoder."""
        return parse_blocks("model.decoder_blocks", self.decoder_blocks)

    @property
    def max_length(self) -> int:
        """The longest sentence: learned positions end where their table ends."""
        return self.max_positions


@dataclass(frozen=True, kw_only=True)
class ByteNetOptions:
    """Neural translation in linear time (Kalchbrenner et al., 2016): a stack of dilations."""

    family: Literal["bytenet"] = option("bytenet", "the kind of model")
    num_encoder_sets: int = option(6, "sets of the encoder: a block for each dilation 1, 2, 4, …")
    num_decoder_sets: int = option(6, "sets of the decoder, which stands upon the encoder")
    max_dilation: int = option(16, "largest dilation of a set: a power of two")
    model_dim: int = option(800, "inner width d of a block; what goes around it is 2d wide")
    kernel_size: int = option(3, "words that a dilated convolution combines")
    block: Literal["relu", "multiplicative"] = option(
        "relu", "the block for translation, or that for language models"
    )
    length_ratio: float = option(1.2, "words the decoder is unfolded to for each source word (a)")
    length_extra: int = option(0, "words added to that (b)")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.0, "dropout on embeddings and on what a block adds")

    def __post_init__(self) -> None:
        check_counts(self, "num_encoder_sets", "num_decoder_sets", "model_dim", "max_dilation")
        dilation = self.max_dilation
        power = dilation & (dilation - 1) == 0
        require(power, "model.max_dilation", dilation, "must be a power of two")
        size = self.kernel_size
        require(size >= 2, "model.kernel_size", size, "must be ≥ 2, or words never meet")
        require(size % 2 == 1, "model.kernel_size", size, "must be odd, for the encoder")
        ratio = self.length_ratio
        require(1 <= ratio <= MAX_LENGTH_RATIO, "model.length_ratio", ratio,
                f"must be from 1, a place for each source word, to {MAX_LENGTH_RATIO}")  # fmt: skip
        extra = self.length_extra
        require(extra >= 0, "model.length_extra", extra, "must not be negative")
        check_share(self, "dropout")

    @property
    def dilations(self) -> tuple[int, ...]:
        """The dilations of one set."""
        return tuple(2**power for power in range(self.max_dilation.bit_length()))

    @property
    def max_length(self) -> None:
        """There is no longest sentence."""
        return
