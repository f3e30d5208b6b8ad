"""An ensemble without training, of the kind of `nets.py`."""

import pytest
from nets import make_ensemble


@pytest.fixture
def ensemble():
    return make_ensemble()
