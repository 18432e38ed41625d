import pytest
from tests.work import grows_linearly

from dragoman.serving.documents.language_marks import mark_languages, mark_page


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<html lang="en">', '<html lang="fr">'),
        ("<p lang=EN-gb id=a>", "<p lang=fr id=a>"),
        ("<p xml:lang = 'en_US'/>", "<p xml:lang = 'fr'/>"),
        ('<p lang="de">en</p>', '<p lang="de">en</p>'),
        ('<p hreflang="en" data-lang="en">', '<p hreflang="en" data-lang="en">'),
        ('lang="en" &lt;p lang="en"&gt;', 'lang="en" &lt;p lang="en"&gt;'),
        ('<w:lang w:eastAsia="ja" w:val="en-US"/>', '<w:lang w:eastAsia="ja" w:val="fr"/>'),
        ('<a:rPr lang="en-US" b="1">', '<a:rPr lang="fr" b="1">'),
        ('<x fo:language="en" fo:country="US"/>', '<x fo:language="fr" fo:country="none"/>'),
        ('<x fo:language="de" fo:country="DE"/>', '<x fo:language="de" fo:country="DE"/>'),
        ('<dc:language id="a"> en-GB </dc:language>', '<dc:language id="a"> fr </dc:language>'),
        ("<dc:language>de</dc:language>", "<dc:language>de</dc:language>"),
    ],
)
def test_the_source_language_becomes_the_target_language(before, after):
    assert mark_languages(before, "en", "fr") == after


def test_scripts_of_pages_stay():
    page = '<html lang="en"><script>x = \'<p lang="en">\'</script><!-- <p lang="en"> -->'
    assert mark_page(page, "en-US", "fr") == page.replace('lang="en"', 'lang="fr"', 1)


@pytest.mark.parametrize("piece", ["<a ", "<a lang", "<w:lang ", "<dc:language>", " lang=en"])
def test_time_is_linear(piece):
    assert grows_linearly(lambda size: mark_languages(piece * size, "en", "fr"), 2000)
