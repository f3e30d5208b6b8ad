"""Prior knowledge as a file: what is written is read again, and every wrong edit is explained in one line."""

import tomllib
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.kernels import Matern, SquaredExponential
from sbsrl.own.description import Description
from sbsrl.own.knowledge import GPNumbers, Knowledge, MethodNumbers, read_knowledge

GP = GPNumbers(
    mean="stay",
    scale=(0.25, 1e-7, 3.0),
    kernel="matern-5/2",
    length_scales=((1.0, 2.0, 30.0), (0.5, 1e6, 4.0), (1.0, 1.0, 1.0)),
    noise=(0.01, 0.02, 0.5),
    signal_means=(-1.5,),
)
KNOWN = Knowledge(
    system="rig.py:make",
    shape=Description(("place", 'the "speed" \\ m/s'), (-1.0,), (2.5,), 40, ("push",)),
    starts=((0.0, -1.0), (0.125, 3e-9)),
    reward="known",
    costs=("learned", "known"),
    belief="gp",
    method=MethodNumbers(30, (0.02, 0.0), 12.5),
    gp=GP,
    source="Made from 80 recorded transitions of 4 episodes and the simulator rig:model,\nwhich is long " * 3,
    found={"coverage": {"0.5": 0.47, "0.95": 1.0}, "stretched": 1.0, "rows": 80, "enough": True},
)
SHARED = replace(
    KNOWN,
    costs=("known", "known"),
    gp=GPNumbers("simulator", (0.5, 2.0), "squared-exponential", ((1.0, 2.0, 3.0),), (0.02,)),
)
NETWORKS = replace(KNOWN, belief="ensemble", gp=None, found={})


def unsaid(knowledge):
    """Without what is only said."""
    return replace(knowledge, source="", found={})


@pytest.mark.parametrize("known", [KNOWN, SHARED, NETWORKS])
def test_what_is_written_is_read_again(known, tmp_path):
    known.write(tmp_path / "prior.toml")
    assert read_knowledge(tmp_path / "prior.toml") == unsaid(known)
    assert (tmp_path / "prior.toml").read_bytes() == known.content
    assert known.as_written == known


def test_numbers_keep_six_digits(tmp_path):
    known = replace(SHARED, starts=((1 / 3, 123456789.0),))
    known.write(tmp_path / "prior.toml")
    assert read_knowledge(tmp_path / "prior.toml").starts == ((0.333333, 123457000.0),) == known.as_written.starts


def test_others_read_it_and_find_what_the_data_said():
    content = tomllib.loads(KNOWN.content.decode())
    assert content["found"] == KNOWN.found
    assert content["system"]["states"] == ["place", 'the "speed" \\ m/s']
    assert "found" not in tomllib.loads(NETWORKS.content.decode())


def test_every_number_has_a_comment_and_no_line_is_too_long_for_one():
    lines = KNOWN.content.decode().splitlines()
    explained = [
        lines[i - 1].startswith("# ")
        for i, line in enumerate(lines)
        if line.startswith(("scale", "samples", "horizon"))
    ]
    assert explained == [True, True, True]
    assert max(len(line) for line in lines if line.startswith("#")) <= 120


def test_learned_signals_are_named_reward_first():
    assert KNOWN.learned == ("cost 0",)
    assert replace(KNOWN, reward="learned").learned == ("reward", "cost 0")
    assert SHARED.learned == ()


def test_kernels_do_not_depend_on_signals_of_the_last_step():
    """Within 1e-12: a length scale of 1e8 is none."""
    kernels = GP.kernels(states=2, signals=1)
    assert len(kernels) == 3
    rng = np.random.default_rng(0)
    for kernel, lengths in zip(kernels, GP.length_scales, strict=True):
        u, v = rng.normal(size=(2, 4))
        u[2], v[2] = 50.0, -50.0  # the signal
        plain = Matern(lengths, nu=2.5)(*(jnp.asarray(np.delete(z, 2)) for z in (u, v)))
        assert abs(kernel(jnp.asarray(u), jnp.asarray(v)) - plain) < 1e-11
    (shared,) = SHARED.gp.kernels(2, 0)
    assert isinstance(shared, SquaredExponential)
    assert shared.lengthscales.tolist() == [1.0, 2.0, 3.0]


EDITS = [
    ("[system]", "[sistem]", r"there is no section \[system\]; make it again"),
    ("[belief]", "", "there is no section \\[belief\\]"),
    ("[method]", "[method", "is no TOML: .* mend it, or make it again with 'sbsrl prior'"),
    ('name = "rig.py:make"', 'name = ""', "system.name wants a word and got ''"),
    ('name = "rig.py:make"', "", "there is no system.name; restore it, or make it again"),
    ("horizon = 40", "horizon = 0", "system.horizon=0 is out of range"),
    ("horizon = 40", "horizon = 40.5", "system.horizon wants a whole number and got 40.5"),
    ("horizon = 40", "horizon = forty", "is no TOML"),
    ("horizon = 40", "steps = 40", "there is no system.horizon; restore it"),
    ('"place"', '3', "system.states wants a word"),
    ('"place"', '"place", "place"', "system.states has a word twice"),
    ("action_low = [-1.0]", "action_low = [-1.0, 0.0]", "must have one entry per action each"),
    ("action_low = [-1.0]", "action_low = [nan]", "system.action_low=nan is not a finite number"),
    ("action_low = [-1.0]", "action_low = [2.5]", r"system.action_low must lie below action_high, and \[2.5\] does"),
    ("starts = [[0.0, -1.0]", "starts = [[0.0]", "system.starts must be rows of 2 numbers each"),
    ("starts = [[0.0, -1.0]", "starts = [[0.0, 'a']", "system.starts wants a number and got 'a'"),
    ("starts = [[0.0, -1.0], [0.125, 3e-09]]", "starts = []", "system.starts must be rows of 2 numbers each"),
    ("starts = [[0.0, -1.0], [0.125, 3e-09]]", "starts = [0.0, 1.0]", "system.starts must be rows of 2 numbers each"),
    ('reward = "known"', 'reward = "knwon"', "there is no system.reward 'knwon'; did you mean 'known'"),
    ('reward = "known"', 'reward = "learned"', "belief.scale must have 4 numbers"),
    ('costs = ["learned", "known"]', 'costs = ["lerned", "known"]', "no system.costs 'lerned'; did you mean 'learned'"),
    ('costs = ["learned", "known"]', "costs = []", "system.costs wants one or more words"),
    ('kind = "gp"', 'kind = "gq"', "there is no belief.kind 'gq'; did you mean 'gp'"),
    ('mean = "stay"', 'mean = "go"', "there is no belief.mean 'go'; choose one of: simulator, stay"),
    ("scale = [0.25,", "scale = [", "belief.scale must have 3 numbers .states, then learned signals., and"),
    ("scale = [0.25,", "scale = [-0.25,", "belief.scale=-0.25 is out of range"),
    ("scale = [0.25,", "scale = [0,", "belief.scale must be positive, and 0 is not"),
    ("noise = [0.01, ", "noise = [", "belief.noise one or as many"),
    ("noise = [0.01, ", "noise = [0.0, ", "belief.noise must be positive, and 0 is not"),
    ("length_scales = [[1.0, 2.0, 30.0],", "length_scales = [[0.0, 2.0, 30.0],", "length_scales must be positive, and"),
    ("length_scales = [[1.0, 2.0, 30.0],", "length_scales = [[-1, 2.0, 30.0],", "length_scales must be positive, and"),
    ("length_scales = [[1.0, 2.0, 30.0],", "length_scales = [[2.0, 30.0],", "must be 1 or 3 rows of 3 numbers each"),
    ("length_scales = [[1.0, 2.0, 30.0],", "length_scales = [", "must be 1 or 3 rows of 3 numbers each"),
    ('kernel = "matern-5/2"', 'kernel = "matern"', "there is no belief.kernel 'matern'; did you mean 'matern-5/2'"),
    ("samples = 30", "samples = 0", "method.samples=0 is out of range"),
    ("samples = 30", "samples = true", "method.samples wants a whole number and got True"),
    ("tightening = [0.02, 0.0]", "tightening = [-0.02, 0.0]", "method.tightening=-0.02 is out of range"),
    ("exploration_threshold = 12.5", "exploration_threshold = -1", "method.exploration_threshold=-1 is out of range"),
    ("exploration_threshold = 12.5", "exploration_threshold = inf", "method.exploration_threshold=inf is not a finite"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), EDITS)
def test_a_wrong_edit_is_explained_in_a_line_that_names_the_file(tmp_path, old, new, said):
    text = KNOWN.content.decode()
    assert text.count(old) == 1
    (tmp_path / "prior.toml").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=said) as caught:
        read_knowledge(tmp_path / "prior.toml")
    assert str(caught.value).startswith(f"the prior {tmp_path / 'prior.toml'}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_explained(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file or directory; make one with 'sbsrl prior'"):
        read_knowledge(tmp_path / "prior.toml")
    (tmp_path / "prior.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is no text: "):
        read_knowledge(str(tmp_path / "prior.toml"))


def test_right_edits_are_taken(tmp_path):
    text = (
        KNOWN.content.decode()
        .replace("samples = 30", "samples = 50 # more careful")
        .replace("scale = [0.25,", "scale = [2,")
    )
    (tmp_path / "prior.toml").write_text(text)
    found = read_knowledge(tmp_path / "prior.toml")
    assert (found.method.samples, found.gp.scale) == (50, (2.0, 1e-7, 3.0))
