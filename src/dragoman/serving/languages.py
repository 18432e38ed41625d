"""Language codes: English names and matching of regional variants."""

from collections.abc import Iterable

# ISO 639-1 codes with English names.
_NAMES = """
aa Afar|ab Abkhazian|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|as Assamese|av Avaric
ay Aymara|az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bi Bislama|bm Bambara|bn Bengali
bo Tibetan|br Breton|bs Bosnian|ca Catalan|ce Chechen|ch Chamorro|co Corsican|cr Cree|cs Czech
cv Chuvash|cy Welsh|da Danish|de German|dv Divehi|dz Dzongkha|ee Ewe|el Greek|en English
eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian|ff Fulah|fi Finnish|fj Fijian|fo Faroese
fr French|fy Western Frisian|ga Irish|gd Scottish Gaelic|gl Galician|gn Guarani|gu Gujarati|gv Manx
ha Hausa|he Hebrew|hi Hindi|hr Croatian|ht Haitian Creole|hu Hungarian|hy Armenian|hz Herero
ia Interlingua|id Indonesian|ie Interlingue|ig Igbo|io Ido|is Icelandic|it Italian|iu Inuktitut
ja Japanese|jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kk Kazakh|kl Kalaallisut|km Khmer|kn Kannada
ko Korean|kr Kanuri|ks Kashmiri|ku Kurdish|kv Komi|kw Cornish|ky Kyrgyz|la Latin|lb Luxembourgish
lg Ganda|li Limburgish|ln Lingala|lo Lao|lt Lithuanian|lu Luba-Katanga|lv Latvian|mg Malagasy
mh Marshallese|mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese
my Burmese|na Nauru|nb Norwegian Bokmål|ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian
nv Navajo|ny Chichewa|oc Occitan|oj Ojibwa|om Oromo|or Odia|os Ossetian|pa Punjabi|pl Polish
ps Pashto|pt Portuguese|qu Quechua|rm Romansh|rn Kirundi|ro Romanian|ru Russian|rw Kinyarwanda
sa Sanskrit|sc Sardinian|sd Sindhi|se Northern Sami|sg Sango|si Sinhala|sk Slovak|sl Slovenian
sm Samoan|sn Shona|so Somali|sq Albanian|sr Serbian|ss Swati|st Southern Sotho|su Sundanese
sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|ti Tigrinya|tk Turkmen|tl Tagalog
tn Tswana|to Tongan|tr Turkish|ts Tsonga|tt Tatar|tw Twi|ty Tahitian|ug Uyghur|uk Ukrainian
ur Urdu|uz Uzbek|ve Venda|vi Vietnamese|vo Volapük|wa Walloon|wo Wolof|xh Xhosa|yi Yiddish
yo Yoruba|za Zhuang|zh Chinese|zu Zulu
"""
NAMES = {
    code: name
    for line in _NAMES.split("\n")
    for code, _, name in (entry.partition(" ") for entry in line.split("|"))
    if code
}


def name_language(code: str) -> str:
    """Return the English name of a language."""
    code = code.replace("_", "-")
    name = NAMES.get(code.split("-")[0].lower())
    region = code.partition("-")[2]
    return code if name is None else f"{name} ({region})" if region else name


def match_language(code: str, served: Iterable[str]) -> str | None:
    """Match a client’s language code to a served language.

    Returns
    -------
    str | None
        The code that is equal, or that is the same without the region, or the only one that the
        client's is without its region; None: there is none.
    """
    codes = list(served)
    wanted = code.replace("_", "-").casefold()
    known = {each.replace("_", "-").casefold(): each for each in codes}
    main = wanted.split("-")[0]
    if wanted in known or main in known:
        return known.get(wanted, known.get(main))
    regional = [each for spelling, each in known.items() if spelling.split("-")[0] == main]
    return regional[0] if len(regional) == 1 else None
