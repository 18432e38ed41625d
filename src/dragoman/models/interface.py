"""Interface that every model family implements, and that search and training use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.models.layers.embedding import OutputLayer
from dragoman.shapes import Float, Int

State = TypeVar("State", bound="DecoderState")


class Vocabulary(NamedTuple):
    """Sizes and special symbols that a model needs of its subwords."""

    source_size: int
    target_size: int
    pad_id: int
    eos_id: int


class Output(NamedTuple):
    """What teacher forcing gives: a hidden state for each target position."""

    hidden: Float[Tensor, "*positions model_dim"]
    auxiliary_loss: Tensor | None


@runtime_checkable
class DecoderState(Protocol):
    """Everything a decoder remembers of several sentences and their hypotheses.

    A state is used up by `TranslationModel.step`, which may write into it.
    """

    @property
    def coverage(self) -> Float[Tensor, "sentences beams source"] | None:
        """How much attention each source word has had in all; None: the family cannot tell."""
        ...

    def reorder(self: State, beams: Int[Tensor, "sentences beams"]) -> State:
        """Let hypothesis k of each sentence continue that sentence's hypothesis ``beams[k]``."""
        ...

    def keep(self: State, sentences: Int[Tensor, "kept"]) -> State:
        """Forget all sentences but these."""
        ...


@runtime_checkable
class SearchedModel(Protocol):
    """What a search needs of a model: three calls and an output layer.

    What `encode` returns only `start` understands; what `start` returns is a `DecoderState` that
    only `step` understands.
    """

    if TYPE_CHECKING:  # at run time Python ≥ 3.12 would look for it where no module keeps modules

        @property
        def output(self) -> Callable[[Tensor], Tensor]:
            """Score every word from what the decoder says."""
            ...

    def encode(self, source: Sequences) -> Any:  # noqa: ANN401
        """Encode the source sentences."""
        ...

    def start(self, memory: Any, capacity: int) -> Any:  # noqa: ANN401
        """Begin one hypothesis a sentence, with room for so many words."""
        ...

    def step(
        self,
        tokens: Int[Tensor, "sentences beams"],
        state: Any,  # noqa: ANN401
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], Any]:
        """Decode one more token of each hypothesis."""
        ...


@runtime_checkable
class TranslationModel(SearchedModel, Protocol):
    """A family of models: trained through `forward`, searched through the rest."""

    if TYPE_CHECKING:
        output: OutputLayer

    def forward(self, batch: Any) -> Output:  # noqa: ANN401
        """Predict every target word of a `Batch` from the source and the true words before it.

        Some families take a `PackedBatch` too.
        """
        ...
