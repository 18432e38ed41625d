"""What stands in a table's cell, and how it is written for people."""

Cell = str | int | float | None

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(cell: Cell) -> float:
    """Take a cell as the number it is."""
    assert isinstance(cell, int | float), f"{cell!r} is no number"
    return float(cell)


def show(cell: Cell, form: str = "") -> str:
    """Write a value for people."""
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
