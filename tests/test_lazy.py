"""Names that a package loads when they are used are what their modules define, whatever was imported before."""

from importlib import import_module

import pytest

import sbsrl
from sbsrl._lazy import loader


@pytest.mark.parametrize("name", sbsrl.__all__)
def test_the_name_is_what_its_module_has_however_often_it_is_asked_for(name):
    home = import_module(f"sbsrl.{sbsrl._MODULES[name]}")
    assert getattr(sbsrl, name) is getattr(sbsrl, name) is getattr(home, name)


def test_every_name_that_is_promised_has_a_home():
    assert sorted(sbsrl._MODULES) == sorted(sbsrl.__all__)


def test_a_name_that_is_a_modules_too_is_refused():
    """After `import package.certify` the attribute `certify` would be the module."""
    with pytest.raises(ValueError, match=r"^certify: the name of a module of some\.package and of something in it$"):
        loader("some.package", {"certify": "certify", "other": "elsewhere"})


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sbsrl' has no attribute 'nothing'"):
        _ = sbsrl.nothing
