"""Pictures of explanations: whole, legible, and with every account in them."""

from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from dragoman.insight import explanation_picture
from dragoman.insight.explanation import Explanation
from dragoman.insight.explanation_picture import draw_explanation
from dragoman.insight.rise import Importance
from dragoman.insight.word_groups import END


def make_explanation(num_rows=4, num_columns=5, *, is_exact=False, word="word") -> Explanation:
    random = np.random.default_rng(num_rows)
    shape = (num_rows + 1, num_columns)
    importance = Importance(
        values=random.normal(size=shape),
        errors=np.full(shape, 0.0 if is_exact else 0.4),
        num_masks=32 if is_exact else 300,
        is_exact=is_exact,
    )
    return Explanation(
        source=" ".join([word] * num_columns),
        translation=" ".join([word] * num_rows),
        source_words=tuple(f"{word}{i}" for i in range(num_columns)),
        target_words=(*(f"{word}{i}" for i in range(num_rows)), END),
        rise=importance,
        gradient=random.normal(size=shape),
        attention=random.dirichlet(np.ones(num_columns), num_rows + 1),
    )


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("size", [(1, 1), (4, 5), (30, 40)])
def test_picture_is_written(tmp_path, suffix, size):
    path = tmp_path / f"why{suffix}"
    draw_explanation(make_explanation(*size), path)
    assert list(tmp_path.iterdir()) == [path]
    if suffix == ".svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    else:
        assert imread(path).ndim == 3


@pytest.fixture
def figure(monkeypatch, tmp_path):
    """Draw, and keep the figure to be asked what is in it."""

    def draw(found):
        kept = []

        def keep(path, text, num_panels, make):
            with matplotlib.rc_context({"font.family": ["DejaVu Sans"]}):
                kept.append(make())
                kept[0].draw_without_rendering()
            assert num_panels == len(kept[0].axes)
            assert all(word in text for word in found.source_words)
            return b"picture"

        monkeypatch.setattr(explanation_picture, "render_figure", keep)
        draw_explanation(found, tmp_path / "why.png")
        return kept[0]

    return draw


def test_numbers_are_those_found_and_the_end_is_left_out(figure):
    found = make_explanation()
    panels = figure(found).axes
    assert len(panels) == 3
    shown = np.asarray(panels[2].images[0].get_array())
    np.testing.assert_array_equal(shown, found.attention[:-1])
    rise = np.asarray(panels[0].images[0].get_array())
    assert (np.sign(rise) == np.sign(found.rise.values[:-1])).all()
    is_sure = np.abs(found.rise.values[:-1]) >= 0.8
    written = {text.get_text() for text in panels[0].texts}
    assert len(written) <= is_sure.sum()


def test_model_without_attention_has_two_panels(figure):
    assert len(figure(replace(make_explanation(), attention=None)).axes) == 2


@pytest.mark.parametrize(
    ("is_exact", "said"), [(True, "all 32 ways"), (False, "300 masks; largest Monte-Carlo")]
)
def test_doubt_is_said(figure, is_exact, said):
    texts = [text.get_text() for text in figure(make_explanation(is_exact=is_exact)).texts]
    assert any(said in text for text in texts)
    assert any("not an explanation" in text for text in [" ".join(texts)])


@pytest.mark.parametrize("found", [make_explanation(), make_explanation(12, 3, word="Donaudampf")])
def test_no_text_leaves_the_picture(figure, found):
    drawn = figure(found)
    renderer = FigureCanvasAgg(drawn).get_renderer()
    for text in drawn.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= drawn.bbox.x1 + 1
        assert box.y1 <= drawn.bbox.y1 + 1
