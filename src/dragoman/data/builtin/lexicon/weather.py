"""The kinds of weather."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherKind:
    """A kind of weather: verb forms for present, past and future, and the word for the weather."""

    french: tuple[str, str, str]
    french_word: str
    english: tuple[str, str, str]
    english_word: tuple[str, str, str]
    spanish: tuple[str, str, str]
    spanish_word: str


WEATHER_KINDS: tuple[WeatherKind, ...] = (
    WeatherKind(
        french=("pleut", "pleuvait", "pleuvra"),
        french_word="",
        english=("is", "was", "will"),
        english_word=("raining", "raining", "rain"),
        spanish=("llueve", "llovía", "lloverá"),
        spanish_word="",
    ),
    WeatherKind(
        french=("neige", "neigeait", "neigera"),
        french_word="",
        english=("is", "was", "will"),
        english_word=("snowing", "snowing", "snow"),
        spanish=("nieva", "nevaba", "nevará"),
        spanish_word="",
    ),
    *(
        WeatherKind(
            french=("fait", "faisait", "fera"),
            french_word=french,
            english=("is", "was", "will"),
            english_word=(english, english, f"be {english}"),
            spanish=("hace", "hacía", "hará"),
            spanish_word=spanish,
        )
        for french, english, spanish in (
            ("froid", "cold", "frío"),
            ("chaud", "hot", "calor"),
            ("beau", "sunny", "sol"),
        )
    ),
)
