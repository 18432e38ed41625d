"""The configuration of a run: a nested dataclass merged from preset, plan, file and flags."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.data.options import CorpusOptions
from dragoman.decoding.options import SearchOptions
from dragoman.errors import OptionError
from dragoman.models.families import ModelOptions
from dragoman.models.options import TransformerOptions
from dragoman.options import OFF, Plain, from_plain, merge, to_plain
from dragoman.presets import AUTO, TUNING, choose_preset, read_preset
from dragoman.text.options import TextOptions
from dragoman.training.options import ENDING_SCHEDULES, TrainingOptions

# Options that may change when a run is resumed.
RESUMABLE = frozenset(
    (
        *("max_steps", "max_epochs", "max_minutes", "patience", "save_minutes", "log_every"),
        *("device", "accumulate", "parallel"),
    )
)
PLANNED = "planned"
"""The preset's name where a plan chose the model."""
DEFAULT_FAMILY = TransformerOptions().family
DEFAULT_UNITS = TextOptions().units


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """All options of a run."""

    model: ModelOptions = field(default_factory=TransformerOptions)
    text: TextOptions = field(default_factory=TextOptions)
    corpus: CorpusOptions = field(default_factory=CorpusOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    search: SearchOptions = field(default_factory=SearchOptions)

    def __post_init__(self) -> None:
        if not self.text.joint and self.model.tied_embeddings == "all":
            raise OptionError(
                "text.joint is off, but model.tied_embeddings is “all”: two vocabularies cannot "
                "share one matrix; give --tied-embeddings target"
            )
        longest = self.model.max_length
        if longest is not None and self.corpus.max_length >= longest:
            raise OptionError(
                f"corpus.max_length is {self.corpus.max_length}, but the model has only {longest} "
                "positions, one of them for the end symbol; lower --max-length or raise "
                "model.max_positions"
            )


def resolve_options(
    preset: str,
    file: Mapping[str, Any],
    flags: Mapping[str, Any],
    num_pairs: int,
    plan: Plain | None = None,
) -> tuple[str, RunOptions]:
    """Merge the options by precedence: defaults < preset < plan < file < flags.

    Parameters
    ----------
    preset : str
        A preset's name; ``auto`` chooses by the size of the corpus, and a lighter one for a CPU.
    file : Mapping[str, Any]
        What a TOML file says.
    flags : Mapping[str, Any]
        What the command line says.
    num_pairs : int
        Sentence pairs to train on.
    plan : dict[str, Any] | None
        What was planned for a budget; one that chooses the model takes the place of ``auto``.
    """
    file, flags = resolve_auto_batch(file), resolve_auto_batch(flags)
    said = merge(file, flags)
    family = said.get("model", {}).get("family", DEFAULT_FAMILY)
    from_plain(ModelOptions, {"family": family}, place="options")  # refuses an unknown family
    if preset == TUNING:  # for a model of any family
        name, recipe = preset, merge(read_preset(preset), {"model": {"family": family}})
    elif preset != AUTO:
        name, recipe = preset, read_preset(preset)
    elif plan is not None and "model" in plan:
        name, recipe = PLANNED, {}
    elif family == DEFAULT_FAMILY:
        name, recipe = choose_preset(num_pairs, has_accelerator=has_accelerator(said))
    else:
        name, recipe = family, read_preset(family)
    own = recipe.get("model", {}).get("family", DEFAULT_FAMILY)
    if own != family and "family" in said.get("model", {}):
        raise OptionError(
            f"the family is {family}, but the preset {name} is a recipe for {own}; leave one out"
        )
    text, own_units = said.get("text", {}), recipe.get("text", {}).get("units", DEFAULT_UNITS)
    is_ready_made = text.get("subwords", OFF) not in (None, OFF)
    if is_ready_made or text.get("units", own_units) != own_units:
        recipe.pop("text", None)  # the preset's size is for other units
    recipe = merge(recipe, plan or {})
    _shorten_warmup(recipe, said)
    return name, from_plain(RunOptions, merge(recipe, file, flags), place="options")


def _shorten_warmup(recipe: Plain, said: Mapping[str, Any]) -> None:
    """Scale the warm-up where the user changes the length of a schedule with an end."""
    own, asked = recipe.get("training", {}), said.get("training", {})
    steps = asked.get("max_steps")
    has_end = own.get("schedule") in ENDING_SCHEDULES and "schedule" not in asked
    if has_end and isinstance(steps, int) and "warmup_steps" not in asked:
        own["warmup_steps"] = max(1, steps * own["warmup_steps"] // own["max_steps"])


def has_accelerator(said: Mapping[str, Any]) -> bool:
    """Tell whether a run will use an accelerator."""
    from dragoman.decoding.device import find_device  # imports PyTorch

    device = said.get("training", {}).get("device", TrainingOptions().device)
    return (find_device(device).type if device == "auto" else device) != "cpu"


def resolve_corpus(file: Mapping[str, Any], flags: Mapping[str, Any]) -> CorpusOptions:
    """Resolve the corpus options, needed before the preset is chosen by the corpus size."""
    said = merge(file, flags).get("corpus", {})
    return from_plain(CorpusOptions, said, place="options")


def resolve_auto_batch(said: Mapping[str, Any]) -> Plain:
    """Replace “batch_tokens = auto” by options.

    Returns
    -------
    dict[str, Any]
        The layer, in which the batch is left to those below and the number of its parts is off:
        to be found when training starts.
    """
    training = said.get("training", {})
    if not isinstance(training, Mapping) or training.get("batch_tokens") != AUTO:
        return dict(said)
    rest = {name: value for name, value in training.items() if name != "batch_tokens"}
    return {**said, "training": {"accumulate": OFF} | rest}


def resumed_options(saved: Plain, flags: Mapping[str, Any]) -> RunOptions:
    """Resolve the options of a resumed run: those of the earlier run, with new limits."""
    flags = resolve_auto_batch(flags)
    before = to_plain(from_plain(RunOptions, saved, place="the resumed run's config.toml"))
    for section, said in flags.items():
        for name, old, new in list_changes(before[section], said):
            if name == "max_steps" and before[section]["schedule"] in ENDING_SCHEDULES:
                raise OptionError(
                    f"--max-steps is {new}, but the learning rate of the run to resume falls to "
                    f"zero at {old}; leave it out, or start another run with --from and another "
                    "--out"
                )
            # Options of other families are refused below, with the family named.
            if name in before[section] and name not in RESUMABLE:
                flag = name.replace("_", "-")
                raise OptionError(
                    f"--{flag} is {new}, but the run to resume has {old}; leave it "
                    "out, or start another run with --from and another --out"
                )
    return from_plain(RunOptions, merge(saved, flags), place="options")


def list_changes(
    before: Mapping[str, Any], said: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """List the options of a section that would change.

    Yields
    ------
    tuple[str, Any, Any]
        An option's name, what it was, None if it was not there, and what it is to be.
    """
    for name, value in said.items():
        new = OFF if value is None else value
        if before.get(name) != new:
            yield name, before.get(name), new
