"""Names: people, cities, countries and continents."""

from dragoman.data.builtin.lexicon.entries import Place

# kind | French with its article | English | Spanish with its gender
_TABLE = """
continent | la Afrique | Africa | África f
continent | la Europe | Europe | Europa f
continent | la Asie | Asia | Asia f
country | la France | France | Francia f
country | la Espagne | Spain | España f
country | la Italie | Italy | Italia f
country | le Canada | Canada | Canadá m
country | la Angleterre | England | Inglaterra f
country | le Japon | Japan | Japón m
country | les États-Unis | the United States | Estados Unidos m
country | la Allemagne | Germany | Alemania f
country | le Mexique | Mexico | México m
country | la Chine | China | China f
country | le Portugal | Portugal | Portugal m
country | le Brésil | Brazil | Brasil m
country | la Russie | Russia | Rusia f
country | la Grèce | Greece | Grecia f
country | le Maroc | Morocco | Marruecos m
city | Paris | Paris | París
city | Londres | London | Londres
city | Madrid | Madrid | Madrid
city | Rome | Rome | Roma
city | Berlin | Berlin | Berlín
city | Lyon | Lyon | Lyon
city | Lisbonne | Lisbon | Lisboa
city | Genève | Geneva | Ginebra
city | Athènes | Athens | Atenas
city | Dublin | Dublin | Dublín
city | Tokyo | Tokyo | Tokio
city | Barcelone | Barcelona | Barcelona
"""
WOMEN = ("Jane", "Marie", "Anna", "Sophie", "Claire", "Alice", "Emma", "Laura", "Julie", "Sarah")
MEN = ("Paul", "Pierre", "Thomas", "Marc", "Louis", "David", "Victor", "Martin", "Daniel", "Oscar")


def _parse_line(line: str) -> Place:
    kind, french, english, spanish = (field.strip() for field in line.split("|"))
    article = name = ""
    if kind == "city":
        name = french
    else:
        article, name = french.split(" ")
    spanish_name, _, gender = spanish.rpartition(" ") if kind != "city" else (spanish, "", "f")
    return Place(
        kind=kind,
        french=name,
        french_article=article,
        english=english.removeprefix("the "),
        english_article="the" if english.startswith("the ") else "",
        spanish=spanish_name,
        spanish_feminine=gender == "f",
        french_feminine=article == "la",
        plural=article == "les",
    )


PLACES: tuple[Place, ...] = tuple(_parse_line(line) for line in _TABLE.strip().splitlines())
