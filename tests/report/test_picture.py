import io

import matplotlib.image
import pytest

from sbsrl import learn
from sbsrl.report.picture import draw_run
from sbsrl.report.reference import Reference


@pytest.mark.parametrize("reference", [None, Reference(-493.0, -187.0)])
def test_a_run_with_and_without_violations_can_be_drawn(tiny, reference):
    result = learn("pendulum", **tiny)
    violating = result.records[0]._replace(cost=7.0, violation=1.0, safe=False)
    picture = draw_run(result.experiment, [violating, *result.records[1:]], reference)
    height, width, _ = matplotlib.image.imread(io.BytesIO(picture)).shape
    assert width > 1000
    assert height > 800


def test_a_long_run_with_a_bound_on_the_expected_cost_can_be_drawn():
    result = learn("ledge", prior="motor", episodes=1)
    lines = [result.records[0]._replace(episode=n, cost=n / 50) for n in range(100)]
    height, width, _ = matplotlib.image.imread(io.BytesIO(draw_run(result.experiment, lines, None))).shape
    assert width > 1000
    assert height > 800
