"""The kinds of weather."""

from dragoman.data.builtin.meaning.meaning import Sky

SKIES: tuple[Sky, ...] = (
    Sky(
        french=("pleut", "pleuvait", "pleuvra"),
        french_word="",
        english=("is", "was", "will"),
        english_word=("raining", "raining", "rain"),
        spanish=("llueve", "llovía", "lloverá"),
        spanish_word="",
    ),
    Sky(
        french=("neige", "neigeait", "neigera"),
        french_word="",
        english=("is", "was", "will"),
        english_word=("snowing", "snowing", "snow"),
        spanish=("nieva", "nevaba", "nevará"),
        spanish_word="",
    ),
    *(
        Sky(
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
