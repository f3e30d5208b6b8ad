"""Runs of a user's own system: met, learned, stopped and resumed."""

import json
from pathlib import Path

import defects
import numpy as np
import pytest
import rail

import sbsrl
from sbsrl import Halted, RunFolder, UserError
from sbsrl.own import names
from sbsrl.own.wording import in_words
from sbsrl.runs import begin, default_folder, resume
from sbsrl.runs.acquaintance import FirstEpisodes, asked_of, opened_system
from sbsrl.transitions import Transitions

FIRST = 5
"""First episodes where nothing is known."""


SMALL = {**rail.SMALL, "first_episodes": FIRST}


@pytest.fixture
def settings():
    return dict(SMALL)


def ledger(folder):
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]


def stop():
    """As Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A whole run of a system of which nothing was known."""
    return sbsrl.learn(rail, seed=3, out=tmp_path_factory.mktemp("own") / "run", **SMALL)


@pytest.mark.parametrize(
    ("task", "method", "folder"),
    [
        ("pendulum", "greedy", "pendulum-greedy-s3"),
        ("gymnasium:Pendulum-v1", "sbsrl", "gymnasium-Pendulum-v1-sbsrl-s3"),
        ("rail.py", "mine:METHOD", "rail.py-mine-METHOD-s3"),
    ],
)
def test_a_run_has_its_own_folder_by_default(task, method, folder):
    assert default_folder(task, method, 3) == Path("runs") / folder


class TestUnknown:
    """A system of which nothing is known."""

    def test_first_episodes_have_the_first_lines_of_the_ledger(self, run):
        lines = ledger(run.folder)
        assert [(line["episode"], line["phase"]) for line in lines[:FIRST]] == [(i, "prior") for i in range(-5, 0)]
        assert [line["episode"] for line in lines[FIRST:]] == [0, 1, 2]
        assert [line["line"] for line in lines] == list(range(len(lines)))
        assert all(line["safe"] for line in lines)

    def test_the_folder_has_what_was_found_out(self, run):
        assert run.config["settings"]["run"]["prior"] == "prior.toml"
        assert run.config["settings"]["run"]["data"] == "offline.npz"
        assert run.config["first_episodes"] == FIRST
        text = (run.folder / "prior.toml").read_text()
        assert 'states = ["place"]' in text
        played = sum(line["steps"] for line in ledger(run.folder)[:FIRST])
        assert len(np.load(run.folder / "offline.npz")["actions"]) == played

    def test_a_loaded_run_gives_the_same_policy(self, run):
        loaded, x = sbsrl.load(run.folder), [0.3]
        run.policy.reset()
        np.testing.assert_array_equal(loaded.policy(x), run.policy(x))
        assert len(loaded.records) == len(run.records)

    def test_it_learned_that_going_right_pays(self, run):
        run.policy.reset()
        assert run.policy([0.0])[0] > 0.3

    def test_it_is_named_by_where_it_can_be_found(self, run):
        assert run.config["task"] == "rail:"
        assert run.config["settings"]["task"]["cost"] == ["rail:place"]


def test_a_run_that_is_killed_while_it_gets_to_know_the_system_goes_on_exactly(tmp_path, settings, left, listens):
    whole = sbsrl.learn(rail, out=tmp_path / "whole", **settings)
    task, changes = in_words(rail, settings)
    observer = listens()
    observer.note = lambda text: observer.notes.append(text) or (len(observer.notes) == 3 and stop())
    with pytest.raises(KeyboardInterrupt):
        begin(task, "sbsrl", 0, "cpu", changes, tmp_path / "cut", observer)
    assert [line["episode"] for line in ledger(tmp_path / "cut")] == [-5, -4, -3]
    assert "asked" in RunFolder.open(tmp_path / "cut").config
    with pytest.raises(UserError, match=r"has no learner yet; continue it with 'sbsrl resume"):
        sbsrl.load(tmp_path / "cut")
    resume(tmp_path / "cut")
    assert left(tmp_path / "cut") == left(whole.folder)
    assert RunFolder.open(tmp_path / "cut").config == whole.config


def test_a_run_that_is_interrupted_later_goes_on_exactly(tmp_path, settings, left, interrupts):
    whole = sbsrl.learn(rail, out=tmp_path / "whole", **settings)
    task, changes = in_words(rail, settings)
    with pytest.raises(KeyboardInterrupt):
        begin(task, "sbsrl", 0, "cpu", changes, tmp_path / "cut", interrupts(rail.STEPS + 3))
    resume(tmp_path / "cut")
    assert left(tmp_path / "cut") == left(whole.folder)


def test_objects_without_a_name_are_named_again_to_resume(tmp_path, settings, left):
    env = defects.Sound()
    given = {**settings, "cost": lambda x, a, y: abs(y[1]), "budget": 5.0}
    given.pop("reward")
    whole = sbsrl.learn(env, out=tmp_path / "run", **given)
    lines = left(whole.folder).ledger
    assert whole.config["task"].startswith("local:system-")
    again = resume(tmp_path / "run", system=env, cost=given["cost"])
    assert left(again.folder).ledger == lines
    with pytest.raises(UserError, match=r"^2 objects were given as cost, and the run began with 1 that have no name"):
        resume(tmp_path / "run", system=env, cost=[abs, abs])


def test_what_is_an_object_of_another_program_is_said(tmp_path, settings, monkeypatch, interrupts):
    task, changes = in_words(defects.Sound(), {**settings, "cost": "info", "budget": 5.0})
    with pytest.raises(KeyboardInterrupt):
        begin(task, "sbsrl", 0, "cpu", changes, tmp_path / "run", interrupts(2))
    monkeypatch.setattr(names, "_KNOWN", {})
    with pytest.raises(
        UserError, match=r"the system was an object of the program .* as in sbsrl.resume\(DIR, system=...\)"
    ):
        resume(tmp_path / "run")


class TestCodeOfTheUser:
    """Editing it between stop and resume changes the run, which is said."""

    @pytest.fixture
    def plant(self, tmp_path, monkeypatch):
        """A file in the working folder."""
        monkeypatch.chdir(tmp_path)
        Path("plant.py").write_text(Path(rail.__file__).read_text())
        return Path("plant.py")

    @pytest.mark.parametrize("steps", [2, rail.STEPS + 3], ids=["first episodes", "later"])
    def test_a_change_is_said(self, plant, settings, interrupts, listens, monkeypatch, steps):
        _, changes = in_words(rail, {**settings, "cost": "plant.py:place", "reward": "plant.py:near"})
        with pytest.raises(KeyboardInterrupt):
            begin("plant.py", "sbsrl", 0, "cpu", changes, Path("run"), interrupts(steps))
        before = RunFolder.open("run").config["sources"]
        assert list(before) == ["plant.py"]
        plant.write_text(plant.read_text() + "# edited")
        with pytest.raises(KeyboardInterrupt):
            resume("run", observer := interrupts(2))
        assert any(
            note.startswith(f"your code changed since the run began (plant.py {before['plant.py']} -> ")
            for note in observer.notes
        )

    def test_no_change_is_said_of_none(self, run, listens):
        observer = listens()
        resume(run.folder, observer)
        assert list(run.config["sources"]) == ["rail"]
        assert not [note for note in observer.notes if "changed" in note]


def test_with_a_simulator_and_a_start_nothing_is_played_beforehand(settings):
    run = sbsrl.learn(rail, **settings, simulator=rail.simulator, start=[0.0])
    assert [record.episode for record in run.records] == [0, 1, 2]
    assert run.experiment.task.prior.data is None


def test_first_episodes_of_one_run_are_data_for_another(run):
    asked = asked_of("rail:", {**in_words(rail, rail.TASK)[1], "data": str(run.folder / "offline.npz")})
    assert not asked.needs_episodes
    assert asked.rows == sum(record.steps for record in run.records if record.episode < 0)


def test_recorded_data_are_copied_into_the_folder(tmp_path, settings, left):
    rng, rows = np.random.default_rng(0), []
    for _ in range(3):
        x = rail.reset(rng)
        for _ in range(rail.STEPS):
            a = rng.uniform(-1, 1, 1)
            rows.append((x, a, y := rail.step(x, a, rng)))
            x = y
    states, actions, after = (np.array(part) for part in zip(*rows, strict=True))
    np.savez(tmp_path / "recorded.npz", states=states, actions=actions, next_states=after)
    run = sbsrl.learn(rail, out=tmp_path / "run", data=tmp_path / "recorded.npz", **settings)
    assert [record.episode for record in run.records] == [0, 1, 2]
    (tmp_path / "recorded.npz").unlink()
    before = left(run.folder)
    assert left(resume(run.folder).folder) == before
    same = Transitions(states, actions, after, np.zeros(24), np.zeros((24, 1)), np.zeros(24, bool))
    in_memory = sbsrl.learn(rail, data=same, **settings)
    assert [record.reward for record in in_memory.records] == [record.reward for record in run.records]


def test_the_word_of_another_program_never_stands_for_something_here(run):
    word = names.bind_new("system", rail)
    assert names.PROCESS in word
    assert word not in json.dumps(run.config)


def test_unrest_is_halved_after_an_episode_that_was_cut_short():
    """A system that costs too much as soon as it moves: every first episode is cut, and the next one is calmer."""
    sent = []

    class Touchy(defects.Sound):
        def step(self, action):
            sent.append((self.n, abs(float(action[0]))))
            *others, _ = super().step(action)
            return *others, {"cost": 3.0}

    asked = asked_of(*in_words(Touchy, {"budget": 5.0, "first_episodes": 4}))
    first = FirstEpisodes(asked, 0)
    with opened_system(asked.system) as env:
        for _ in range(4):
            assert first.play(env, 20).episode.ended == "truncated"
    strongest = [max(a for _, a in sent[i : i + 1]) for i in range(4)]
    assert len(sent) == 4
    assert all(size <= bound for size, bound in zip(strongest, (0.1, 0.05, 0.05, 0.05), strict=True))


def test_an_episode_that_is_cut_short_ends_with_the_safe_action():
    sent = []

    class Dear(defects.Sound):
        def step(self, action):
            sent.append(float(action[0]))
            *others, _ = super().step(action)
            return *others, {"cost": 3.0}

    asked = asked_of(*in_words(Dear, {"budget": 5.0, "safe_action": [-0.25]}))
    with opened_system(asked.system) as env:
        FirstEpisodes(asked, 0).play(env, 20)
    assert sent[-1] == -0.25
    assert len(sent) == 2


def test_several_costs_have_budgets_of_their_own(settings):
    costs = {"place": rail.place, "effort": rail.effort}
    given = {**settings, "cost": costs, "budget": {"place": 1.2, "effort": 3.0}, "aggregation": ["statewise", "sum"]}
    run = sbsrl.learn(rail, **given)
    assert [(c.name, c.budget, c.aggregation) for c in run.experiment.task.costs] == [
        ("place", 1.2, "statewise"),
        ("effort", 3.0, "sum"),
    ]
    assert all(record.safe for record in run.records)
    assert {"cost/place", "cost/effort"} <= set(run.records[-1].metrics)


class TestRefused:
    """What cannot work gets one line, and nothing is lost."""

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"budget": None}, r"^the budget of rail: is yours to say: how much may an episode cost\? Give budget="),
            ({"budget": (1.0, 2.0)}, r"^2 budgets were given for 1 costs \(place\); give one for each"),
            ({"steps": 0}, r"^rail: does not say how many steps an episode has; give steps"),
            ({"cost": "rail:nothing"}, r"^the cost rail:nothing: rail has no 'nothing'; it has "),
            ({"simulator": "nowhere:f", "start": [0.0]}, r"^the simulator nowhere:f: there is no module 'nowhere'"),
            ({"data": "no.csv"}, r"no\.csv"),
        ],
    )
    def test_before_anything_is_played(self, tmp_path, settings, changes, said):
        given = {name: value for name, value in {**settings, **changes}.items() if value is not None}
        with pytest.raises(UserError, match=said):
            sbsrl.learn(rail, out=tmp_path / "run", **given)

    def test_a_budget_below_what_doing_nothing_costs(self, tmp_path, settings):
        with pytest.raises(
            Halted,
            match=r"^every first episode cost more than the budget of place, -1, or would have: at least .* Raise",
        ):
            sbsrl.learn(rail, out=tmp_path / "run", **{**settings, "budget": -1.0})
        assert len(ledger(tmp_path / "run")) == FIRST

    def test_a_system_that_fails_halts_the_run_and_what_was_played_is_kept(self, tmp_path, settings):
        given = {**settings, "cost": "info", "budget": 5.0}
        given.pop("reward")
        with pytest.raises(
            Halted, match=r"^a first episode was cut short: the observation at step 4 is not finite.*resume"
        ):
            sbsrl.learn(defects.NanObservation, out=tmp_path / "run", **given)
        (line,) = ledger(tmp_path / "run")
        assert (line["episode"], line["ended"], line["steps"]) == (-5, "fault", 3)

    def test_a_system_that_cannot_be_reset(self, settings):
        with pytest.raises(Halted, match=r"^a first episode was cut short: the reset raised ConnectionError"):
            sbsrl.learn(defects.RaisesAtReset, **{**settings, "cost": "info"})

    def test_a_failure_in_the_last_first_episode_halts_as_well(self, tmp_path, settings):
        class Fails(defects.Sound):
            resets = 0

            def reset(self, **options):
                type(self).resets += 1
                return super().reset(**options)

            def step(self, action):
                if self.resets == FIRST:
                    raise RuntimeError("smoke")
                return super().step(action)

        given = {**settings, "cost": "info", "budget": 5.0}
        given.pop("reward")
        with pytest.raises(Halted, match=r"^a first episode was cut short: step 1 raised RuntimeError: smoke"):
            sbsrl.learn(Fails, out=tmp_path / "run", **given)
        assert Fails.resets == FIRST

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"method": "nonsense"}, r"^there is no method 'nonsense'"),
            ({"candidate": 10}, r"^there is no setting 'candidate'"),
            ({"belief": "nonsense"}, r"^there is no belief 'nonsense'"),
            ({"safe_action": [5.0]}, r"^the safe action \[5\.0\] is none of the system's, which are -1 to 1"),
            ({"safe_action": [0.0, 0.0]}, r"^the safe action \[0\.0, 0\.0\] is none of the system's"),
            (
                {"region_low": [1.0, 0.0], "region_high": [-1.0, 1.0]},
                r"^the region lies between 1 and -1: swap the limits",
            ),
            ({"action_low": [-2.0], "action_high": [1.0]}, r"is to lie between -2 and 1, and the system takes -1 to 1"),
        ],
    )
    def test_nothing_is_played_with_settings_that_make_no_sense(self, tmp_path, settings, changes, said):
        class Never(defects.Sound):
            def reset(self, **options):
                pytest.fail("it was reset")

        given = {**settings, "cost": "info", "budget": 5.0}
        given.pop("reward")
        with pytest.raises(UserError, match=said):
            sbsrl.learn(Never, out=tmp_path / "run", **{**given, **changes})
        assert not (tmp_path / "run").exists()

    def test_a_prior_for_other_limits_than_the_user_says(self, tmp_path, run, settings):
        given = {**settings, "prior": str(run.folder / "prior.toml")}
        with pytest.raises(
            UserError, match=r"^the prior has 8 steps in an episode, and here there are 4; make it again"
        ):
            sbsrl.learn(rail, **{**given, "steps": 4})
        with pytest.raises(UserError, match=r"^the prior has \(1\.0,\) upper limits of actions"):
            sbsrl.learn(rail, **given, action_high=[0.2])

    def test_leaving_the_region_stops_an_episode_at_once(self, tmp_path, settings):
        region = {"region_low": [-0.06], "region_high": [0.06], "safe_action": [0.0]}
        said = r"place is .*, outside the allowed region from -0\.06 to 0\.06; the safe action was sent"
        with pytest.raises(Halted, match=said):
            sbsrl.learn(rail, out=tmp_path / "run", **settings, **region)
        assert ledger(tmp_path / "run")[-1]["ended"] == "fault"
