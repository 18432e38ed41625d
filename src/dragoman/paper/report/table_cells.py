"""What stands in a table's cell, and how it is written for people."""

Cell = str | int | float | None

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(cell: Cell) -> float:
    """Take a cell as the number it is.

    Parameters
    ----------
    cell : str | int | float | None
        A number; anything else is a mistake of the program.

    Returns
    -------
    float
        Its value.
    """
    assert isinstance(cell, int | float), f"{cell!r} is no number"
    return float(cell)


def show(cell: Cell, form: str = "") -> str:
    """Write a value for people.

    Parameters
    ----------
    cell : str | int | float | None
        The value; None: there is none.
    form : str
        How numbers are written, as in `Column`.

    Returns
    -------
    str
        Powers of ten as people write them: 2.3·10¹⁹.
    """
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if cell == 0 and form.endswith("e"):
        return "0"
    text = format(cell, form or ("," if isinstance(cell, int) else ".4g"))
    mantissa, sign, exponent = text.partition("e")
    if sign:
        text = f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")
