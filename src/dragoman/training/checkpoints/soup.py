"""“dragoman average”: average models or checkpoints into one model folder."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.data.corpus import read_aligned
from dragoman.decoding.device import choose_device
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError, OptionError
from dragoman.evaluation.bleu import corpus_bleu, tokenizer_for
from dragoman.folder import read_folder
from dragoman.training.checkpoints.average import (
    Soup,
    Weights,
    average_weights,
    find_weights,
    folder_of,
    greedy_soup,
    write_average,
)
from dragoman.weights import load_model, put_weights


def average_models(
    places: Sequence[Path],
    out: Path,
    *,
    greedy: bool = False,
    valid_source: Path | None = None,
    valid_target: Path | None = None,
    device: str = "auto",
) -> str:
    """Average models and write the result."""
    paths = find_weights(places)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderError(f"{out}: already holds something; name a new folder")
    subwords = {read_folder(folder_of(path)).vocabularies.content_hash() for path in paths}
    if len(subwords) > 1:
        raise FolderError(
            f"{paths[-1].parent}: only models with the same subwords can be averaged; train one "
            "from the other with --from"
        )
    if not greedy:
        soup = Soup(weights=average_weights(paths), chosen=tuple(paths))
        write_average(out, folder_of(paths[0]), soup)
        return f"{out}: average of {len(paths)} models"
    if valid_source is None or valid_target is None:
        raise OptionError("--greedy needs --valid-source and --valid-target to choose by")
    sources, references = read_aligned([valid_source, valid_target], ["source", "target"])
    folder, where = read_folder(folder_of(paths[0])), choose_device(device)
    model = load_model(folder).to(where)
    translator = Translator(folder, model, where)  # an engine would copy the weights
    tokenizer = tokenizer_for(translator.folder.facts.target_language)

    def score(weights: Weights) -> float:
        put_weights(model, weights, paths[0])
        translations = [each.text for each in translator.translate_all(sources)]
        return corpus_bleu(translations, [references], tokenize=tokenizer)

    soup = greedy_soup(paths, score)
    write_average(out, folder_of(paths[0]), soup)
    return (
        f"{out}: average of {len(soup.chosen)} of {len(paths)} models, BLEU {max(soup.scores):.2f} "
        f"(best single model {soup.scores[0]:.2f}); took "
        + ", ".join(str(path.parent) for path in soup.chosen)
    )
