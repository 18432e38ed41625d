"""Two to the power of a fraction between −½ and ½, as a polynomial."""

COEFFICIENTS = (
    1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0
)  # fmt: skip
"""Of the sixth power first; the result is right to two units of the last place."""

LOWEST = -126.0
"""The lowest exponent of a fraction of 32 bits that has all its digits."""
