"""The served models and the paths between languages, directly or through a pivot."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from dragoman.decoding.options import Precision
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.serving.languages import name_language
from dragoman.serving.service_types import Language, ServedModel
from dragoman.text.target_marks import shorten


class ServedModels:
    """The served models.

    Parameters
    ----------
    models : Sequence[ServedModel]
        The models; of several for the same languages the first is used where a client names none.
    """

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.all = tuple(models)
        self._by_pair = {(each.source, each.target): each for each in reversed(models)}
        self.codes = tuple(
            dict.fromkeys(code for each in models for code in (each.source, each.target))
        )

    def named(self, name: str) -> list[ServedModel]:
        """List the model of a name, once for each language that it writes."""
        return [each for each in self.all if each.name == name]

    def find_path(self, source: str, target: str) -> tuple[ServedModel, ...] | None:
        """Find the models that translate one language to another.

        Returns
        -------
        tuple[ServedModel, ...] | None
            One model, or two by way of a third language, the first such in the order in which the
            models were given; none for a language to itself. None: there is no way.
        """
        if source == target:
            return ()
        direct = self._by_pair.get((source, target))
        if direct is not None:
            return (direct,)
        for pivot in self.codes:
            first = self._by_pair.get((source, pivot))
            second = self._by_pair.get((pivot, target))
            if first is not None and second is not None:
                return first, second
        return None

    def languages(self) -> list[Language]:
        """List the languages."""
        listed = []
        for code in sorted(self.codes):
            targets = [each for each in sorted(self.codes) if self.find_path(code, each)]
            listed.append(Language(code=code, name=name_language(code), targets=tuple(targets)))
        return listed


def load_models(
    paths: Sequence[Path], device: str = "auto", precision: Precision = "auto"
) -> ServedModels:
    """Load model folders to serve.

    Returns
    -------
    Models
        The models, named by their folders; where two have the same name, the later has a number.
    """
    served: list[ServedModel] = []
    for path in paths:
        translator = Translator.load(path, device, (), precision)
        facts = translator.folder.facts
        targets: dict[str, str | None] = {
            shorten(each): each for each in reversed(facts.target_languages)
        }
        if not targets and facts.target_language is not None:
            targets = {facts.target_language: None}
        if facts.source_language is None or not targets:
            raise FolderError(
                f"{path}: does not say its languages; write source_language and target_language "
                "into its dragoman.json, and delete “digest” there"
            )
        names = [each.name for each in served]
        plain = path.resolve().name
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain([plain], numbered) if each not in names)
        served += [
            ServedModel(
                name=name,
                source=facts.source_language,
                target=target,
                family=translator.folder.options.family,
                translator=translator,
                precision=precision,
                into=into,
                formality=frozenset(facts.formality),
            )
            for target, into in targets.items()
            if target != facts.source_language or len(targets) == 1
        ]
    return ServedModels(served)
