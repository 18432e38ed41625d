"""Check a model folder or a run for damage, file by file."""

from pathlib import Path

from dragoman.data.store.checked_files import check_store
from dragoman.data.store.mapped import read_facts
from dragoman.decoding.confidence import CONFIDENCE_FILE, read_calibration
from dragoman.decoding.engines.cpu.weight_file import check_finite
from dragoman.decoding.search.shortlist import SHORT_LIST_FILE, ShortList
from dragoman.errors import DragomanError
from dragoman.folder import RUN_FILE, WEIGHTS_FILE, ModelFolder, read_folder
from dragoman.training.checkpoints.recovery import check_checkpoints
from dragoman.training.run import CHECKPOINTS


def find_damage(path: Path) -> list[str]:
    """Read every file of a model folder or a run, and list what is damaged."""
    is_run = (path / RUN_FILE).exists()
    needs_weights = not is_run or (path / WEIGHTS_FILE).exists()
    found: list[str] = []
    try:
        found += _check_model(read_folder(path, needs_weights=needs_weights))
    except DragomanError as error:
        found.append(str(error))
    if is_run:
        found += check_checkpoints(path / CHECKPOINTS) + _check_run_store(path / RUN_FILE)
    return found


def lacks_digests(path: Path) -> bool:
    """Say whether a model's weights have no digests, so that damage would go unnoticed."""
    return (path / WEIGHTS_FILE).exists() and not read_folder(path).open_weights().has_digests


def _check_run_store(path: Path) -> list[str]:
    """Check the prepared corpus of a run."""
    store = read_facts(path).get("store")
    return [f"{path}: damaged; get it again"] if store is None else check_store(Path(store))


def _check_model(folder: ModelFolder) -> list[str]:
    """Check all weights, and short-list and calibration if there are any."""
    found = []
    if folder.weights is not None:
        for name in folder.weights.names:
            try:
                numbers = folder.weights.read_wide(name)
                if numbers.dtype.kind == "f":
                    check_finite(folder.weights.path, name, numbers)
            except DragomanError as error:
                found.append(str(error))
    if (folder.path / SHORT_LIST_FILE).exists():
        try:
            ShortList.read(folder)
        except DragomanError as error:
            found.append(str(error))
    if (folder.path / CONFIDENCE_FILE).exists():
        try:
            read_calibration(folder)
        except DragomanError as error:
            found.append(str(error))
    return found
