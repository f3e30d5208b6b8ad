import io

import matplotlib.image

from sbsrl.report.canvas import plt, png


def test_a_figure_becomes_a_picture_of_its_size_and_is_closed():
    """150 dots an inch."""
    figure = plt.figure(figsize=(4, 2))
    height, width, _ = matplotlib.image.imread(io.BytesIO(png(figure))).shape
    assert (width, height) == (600, 300)
    assert not plt.fignum_exists(figure.number)
