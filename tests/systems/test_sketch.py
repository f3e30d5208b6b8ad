"""Shapes land where they should, in metres, the second coordinate upwards."""

import numpy as np
import pytest

from sbsrl.systems.sketch import Sketch


@pytest.fixture
def sheet():
    """Ten metres by five, as 100 by 50 pixels, with (0, 0) in the lower left corner."""
    return Sketch((100, 50), 0.0, 0.0, 10.0, "#ffffff")


def dark(sheet):
    """The rows and columns of what is drawn."""
    return np.nonzero(sheet.pixels()[..., 1] < 128)


def test_the_paper_is_blank_and_has_the_size_that_was_asked_for(sheet):
    assert sheet.pixels().shape == (50, 100, 3)
    assert (sheet.pixels() == 255).all()


def test_a_disc_is_round_and_in_its_place(sheet):
    sheet.disc((7.0, 1.0), 0.8, "#000000")
    rows, columns = dark(sheet)
    assert (rows.mean(), columns.mean()) == (pytest.approx(40, abs=1), pytest.approx(70, abs=1))
    assert np.ptp(rows) == np.ptp(columns) == pytest.approx(16, abs=1)


def test_a_box_fills_the_pixels_between_its_corners(sheet):
    sheet.box((1.0, 1.0), (3.0, 2.0), "#000000")
    assert len(dark(sheet)[0]) == pytest.approx(200, rel=0.1)


def test_a_line_has_its_thickness(sheet):
    sheet.line(((2.0, 2.5), (8.0, 2.5)), 0.5, "#000000")
    rows, columns = dark(sheet)
    assert np.ptp(rows) + 1 == pytest.approx(5, abs=1)
    assert np.ptp(columns) == pytest.approx(60 + 5, abs=2)


def test_an_arc_turns_counterclockwise(sheet):
    sheet.arc((5.0, 1.0), 2.0, 0.0, np.pi / 2, 0.1, "#000000")
    rows, columns = dark(sheet)
    assert columns.min() >= 48
    assert rows.max() <= 42
    assert rows.min() == pytest.approx(20, abs=1)
