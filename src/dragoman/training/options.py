"""Options of training."""

from dataclasses import dataclass
from typing import Literal

from dragoman.options import option, require
from dragoman.presets import AUTO

Schedule = Literal["inverse-sqrt", "cosine", "warmup-stable-decay", "constant"]
ENDING_SCHEDULES = ("cosine", "warmup-stable-decay")
"""Schedules that depend on the number of the last update."""


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
    schedule: Schedule = option(  # noqa: RUF009 (an alias of Literal)
        "inverse-sqrt",
        "learning rate after warm-up: the paper's, two that fall to zero at --max-steps, or "
        "constant",
    )
    decay_share: float = option(
        0.2, "share of the updates in which the rate of warmup-stable-decay falls to zero"
    )
    optimiser: Literal["adam", "schedule-free", "muon"] = option(
        "adam",
        "the paper's Adam; schedule-free AdamW, which needs --schedule constant; or Muon for the "
        "matrices of layers and Adam for all else",
    )
    label_smoothing: float = option(0.1, "share ε of probability spread over all subwords")
    consistency: Literal["none", "r-drop", "simcut"] = option(
        "none",
        "read each batch twice and train for the same answers: with other dropout (R-Drop), or "
        "with words cut off (SimCut)",
    )
    consistency_weight: float = option(
        3.0, "weight α of the divergence of the two readings; published: SimCut 3, R-Drop 5"
    )
    cutoff: float = option(0.05, "share of the words cut off in the second reading of SimCut")
    token_cutoff: float = option(0.0, "share of the words cut off in ordinary readings")
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
    snapshots: bool = option(
        False, "keep the weights after 1, 2, 5, 10, 20, 50, … updates too, to look at on the page"
    )
    precision: Literal["auto", "float32", "float32-onednn", "bfloat16"] = option(
        "auto",
        "arithmetic of the matrix products; auto: bfloat16 on a GPU, on a CPU the fastest of the "
        "others, measured at the start; float32-onednn: by oneDNN, which may be faster than MKL",
    )
    kernels: Literal["auto", "off"] = option(
        "auto", "packed batches and our own kernels on a CUDA device; off: PyTorch's operations"
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = option("auto", "where to train")
    start_share: float | None = option(
        0.0,
        "share of the weights of --from averaged into the result; off: chosen on held-out lines",
    )
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
        self._check_schedule()
        self._check_optimiser()
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
        share = self.start_share
        good = share is None or 0 <= share <= 1
        require(good, "training.start_share", share, "must be in [0, 1], or off")
        require(self.seed >= 0, "training.seed", self.seed, "must not be negative")
        self._check_consistency()

    def _check_consistency(self) -> None:
        """Check the options of consistency training."""
        for name in ("cutoff", "token_cutoff"):
            share = getattr(self, name)
            require(0 <= share < 1, f"training.{name}", share, "must be in [0, 1)")
        weight = self.consistency_weight
        require(weight >= 0, "training.consistency_weight", weight, "must not be negative")
        fits = self.consistency == "none" or self.objective == "likelihood"
        remedy = "goes with --objective likelihood only"
        require(fits, "training.consistency", self.consistency, remedy)

    def _check_schedule(self) -> None:
        """Check that a schedule with an end has one."""
        share = self.decay_share
        require(0 < share <= 1, "training.decay_share", share, "must be in (0, 1]")
        if self.schedule not in ENDING_SCHEDULES:
            return
        if self.max_steps is None:
            remedy = "it must know its last update; give --max-steps beside any other limit"
            require(False, "training.schedule", self.schedule, remedy)
            return
        falling = share * self.max_steps if self.schedule == "warmup-stable-decay" else 0
        require(
            self.warmup_steps <= self.max_steps - max(falling, 1),
            "training.warmup_steps",
            self.warmup_steps,
            f"too many for {self.max_steps} updates of which the last lower the rate; lower it or "
            "raise --max-steps",
        )

    def _check_optimiser(self) -> None:
        """Check which options the optimiser can be combined with."""
        if self.optimiser == "schedule-free":
            remedy = "schedule-free does without; give --schedule constant"
            require(self.schedule == "constant", "training.schedule", self.schedule, remedy)
            remedy = "schedule-free keeps an average of its own; give --ema-decay off"
            require(self.ema_decay is None, "training.ema_decay", self.ema_decay, remedy)
        if self.optimiser == "muon":
            remedy = "muon needs whole matrices; give --parallel replicate or another --optimiser"
            require(self.parallel != "shard", "training.parallel", self.parallel, remedy)
