"""A calibration that was made up, for tests of what becomes of one."""

import shutil
from pathlib import Path

from dragoman.decoding.confidence import (
    FEATURES,
    Bin,
    Calibration,
    Regression,
    Reliability,
    Weighed,
    write_calibration,
)
from dragoman.folder import read_folder

CALIBRATION = Calibration(
    good_chrf=60.0,
    fitted_on="lines of nowhere",
    num_lines=300,
    regression=Regression(
        length_ratio=0.1,
        intercept=0.4,
        features={
            name: Weighed(0.2 * place - 1.0, 0.5 + place, sign * 0.3)
            for place, (name, sign) in enumerate(FEATURES.items())
        },
    ),
    reliability=Reliability(
        share_good=0.6,
        brier=0.2,
        calibration_error=0.03,
        ranking=0.75,
        bins=(Bin(0.25, 0.3, 100), Bin(0.8, 0.75, 200)),
    ),
)


def copy_calibrated(path: Path, copied: Path) -> Path:
    """Copy a model folder, and calibrate the copy."""
    shutil.copytree(path, copied)
    write_calibration(read_folder(copied), CALIBRATION)
    return copied
