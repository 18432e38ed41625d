"""What a user may say about training."""

from dataclasses import dataclass
from typing import Literal

from dragoman.options import option, require
from dragoman.presets import AUTO


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How the model is trained; the defaults are the paper's base recipe."""

    batch_tokens: int = option(
        50_000,
        "subwords per update, source plus target, padding not counted, whoever computes it; auto: "
        "the recipe's, and --accumulate off",
        words=(AUTO,),
    )
    accumulate: int | None = option(
        1, "parts in which a process computes its share of an update; off: as few as fit its memory"
    )
    parallel: Literal["replicate", "shard"] = option(
        "replicate", "whether each of several processes has the whole model or a share of it"
    )
    warmup_steps: int = option(4000, "updates during which the learning rate rises")
    peak_learning_rate: float | None = option(
        None, "learning rate at the end of warm-up; off: the paper's 1/√(model_dim·warmup_steps)"
    )
    label_smoothing: float = option(0.1, "share ε of probability spread over all subwords")
    objective: Literal["likelihood", "reward"] = option(
        "likelihood", "what is trained for; reward refines a trained model, given as --from"
    )
    reward_samples: int = option(15, "translations drawn for each pair to train for reward")
    likelihood_weight: float = option(0.017, "weight α of the likelihood beside the reward")
    weight_decay: float = option(0.0, "decoupled weight decay of matrices")
    clip_norm: float | None = option(None, "largest norm of the gradient")
    max_steps: int | None = option(100_000, "stop after so many updates")
    max_epochs: int | None = option(None, "stop after so many passes over the corpus")
    max_minutes: float | None = option(None, "stop after so many minutes of training")
    validate_every: int = option(1000, "updates between validations (and checkpoints)")
    patience: int | None = option(None, "stop after so many validations without a better one")
    best_by: Literal["bleu", "loss"] = option("bleu", "what makes a validation the best")
    valid_beam_size: int = option(1, "beam size of the translations that validation scores")
    average_checkpoints: int = option(5, "average the last so many checkpoints at the end")
    ema_decay: float | None = option(None, "keep a moving average of the weights and validate that")
    save_minutes: float = option(10.0, "minutes between checkpoints besides those of validation")
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto", "arithmetic of the matrix products; auto: bfloat16 on a GPU, else float32"
    )
    kernels: Literal["auto", "off"] = option(
        "auto", "packed batches and our own kernels on a CUDA device; off: PyTorch's operations"
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = option("auto", "where to train")
    seed: int = option(1, "seed of every random choice")
    log_every: int = option(50, "updates between lines of the log")
    tensorboard: bool = option(False, "write TensorBoard events too (needs dragoman[tensorboard])")

    def __post_init__(self) -> None:
        positive = ("batch_tokens", "warmup_steps", "validate_every", "log_every")
        for name in (*positive, "valid_beam_size", "average_checkpoints"):
            require(
                getattr(self, name) >= 1, f"training.{name}", getattr(self, name), "must be ≥ 1"
            )
        optional = ("accumulate", "max_steps", "max_epochs", "max_minutes", "patience")
        for name in (*optional, "peak_learning_rate", "clip_norm"):
            value = getattr(self, name)
            good = value is None or value > 0
            require(good, f"training.{name}", value, "must be positive, or off")
        limits = (self.max_steps, self.max_epochs, self.max_minutes, self.patience)
        limited = any(each is not None for each in limits)
        require(
            limited, "training.max_steps", "off", "give one of max_epochs, max_minutes, patience"
        )
        smoothing = self.label_smoothing
        require(0 <= smoothing < 1, "training.label_smoothing", smoothing, "must be in [0, 1)")
        decay = self.ema_decay
        require(decay is None or 0 < decay < 1, "training.ema_decay", decay, "must be in (0, 1)")
        require(self.save_minutes > 0, "training.save_minutes", self.save_minutes, "must be > 0")
        require(self.weight_decay >= 0, "training.weight_decay", self.weight_decay, "must be ≥ 0")
        drawn = self.reward_samples
        require(drawn >= 2, "training.reward_samples", drawn, "must be ≥ 2, to compare them")
        weight = self.likelihood_weight
        require(weight >= 0, "training.likelihood_weight", weight, "must not be negative")
        require(self.seed >= 0, "training.seed", self.seed, "must not be negative")
