"""The figures of the experiments with networks: what they compare, how they count, and that they can be drawn."""

import csv
import io

import matplotlib.image
import numpy as np
import pytest
from made_up_records import make_record

from sbsrl.report import car, deep_baselines, deep_bodies, deep_calibration, deep_mean, deep_monitor
from sbsrl.report.deep_arms import ALL, BINDING, BODIES, WORLDS, arm, oracle, oracle_of, with_prior, world_of
from sbsrl.report.deep_study import Numbers, Run, Study, _best, _scale, deep_table
from sbsrl.report.figures import FIGURES, Request
from sbsrl.report.interventions import interventions_table

ARMS = {
    "deep-mean": lambda: [each for world in ALL.values() for each in deep_mean.arms(world)],
    "deep-baselines": lambda: [each for world in ALL.values() for each in deep_baselines.arms(world).values()],
    "deep-bodies": lambda: [each for world in BODIES.values() for each in deep_baselines.arms(world).values()],
    "deep-monitor": lambda: [
        each for world in deep_monitor.WATCHED_WORLDS.values() for each in deep_monitor.listed(world)
    ],
    "car": car.arms,
    "deep-calibration": lambda: list(
        dict.fromkeys(
            [
                *deep_calibration.ablation(),
                *(a for many in deep_calibration.by_data().values() for a in many),
                *deep_calibration.by_budget(),
            ]
        )
    ),
}
MODULES = {
    "deep-mean": deep_mean,
    "deep-baselines": deep_baselines,
    "deep-bodies": deep_bodies,
    "deep-monitor": deep_monitor,
    "car": car,
    "deep-calibration": deep_calibration,
}

MORE = {name: (f"{name}-mujoco.png",) for name in ("deep-mean", "deep-baselines")}


def episode(number, true_cost, true_return, cost, **metrics):
    told = {"true_cost": true_cost, "true_return": true_return, "multiplier": 0.0, "origin": 0.0, "covered": 1.0}
    phase = "final" if number == 2 else "exploit"
    return make_record(number, phase, true_return, cost, 15.0, metrics={**told, "kappa": 2.0, **metrics})


def run(prior=201, seed=2000, dear=20.0):
    """One of three policies violates, one episode does, once a constraint presses, once it is fallen back."""
    records = [
        episode(0, 5.0, 80.0, 25.0, origin=2.0, covered=0.0),
        episode(1, dear, 120.0, 3.0, multiplier=0.5, origin=3.0),
        episode(2, 15.0, 160.0, 15.0, kappa=1.5),
    ]
    return Run(prior, seed, records, {"clone/true_return": 60.0, "clone/true_cost": 1.0}, (80.0, 120.0))


def study(arms, **changes):
    made = {each: [run(prior, 2000, **changes) for prior in (201, 202)] for each in arms}
    return Study(made, {oracle_of(each): 260.0 for each in arms if world_of(each).has_oracle})


def test_a_run_is_counted_by_hand():
    found = run()
    assert (found.violating_policies, found.violating_episodes, found.fallbacks) == (1, 1, 1)
    assert found.active == pytest.approx(1 / 3)
    assert found.coverage == pytest.approx(2 / 3)


def test_whether_samples_foretold_the_true_mean_cost_is_counted_by_hand():
    """Budget 15: 5 and 14 were foretold, 20 was not; that nothing costs and nothing was foretold is no test."""
    records = [
        episode(0, 5.0, 80.0, 0.0, worst_sample=9.0),
        episode(1, 20.0, 80.0, 0.0, worst_sample=12.0),
        episode(3, 14.0, 80.0, 0.0, worst_sample=13.0),
        episode(4, 0.0, 80.0, 0.0, worst_sample=1.0),
        episode(2, 30.0, 80.0, 0.0),
    ]
    assert run()._replace(records=records).policies_covered == pytest.approx(2 / 3)
    assert np.isnan(run().policies_covered)


def test_returns_go_from_the_prior_to_the_true_dynamics():
    ours = arm("sbsrl", BINDING)
    found = study([ours])
    np.testing.assert_allclose(found.curves(ours), [[0.1, 0.3, 0.5]] * 2)
    np.testing.assert_allclose(found.final(ours), 0.5)
    assert (found.violating(ours), found.policies(ours)) == (2, 6)
    assert "| 2 of 6, in 2 of 2 runs | 20.0 of 15 | 2 of 6 |" in deep_table(found, [ours])


def test_where_no_equations_are_known_returns_are_shares_of_what_the_behaviour_earned():
    """Recorded episodes of 80 and 120: returns of 80, 120 and 160 are 0.8, 1.2 and 1.6 of them, with no oracle."""
    ours = arm("sbsrl", BODIES["quadruped"])
    np.testing.assert_allclose(study([ours]).curves(ours), [[0.8, 1.2, 1.6]] * 2)
    said = _scale(study([ours]), [ours])
    assert "1 is what an episode of the offline data earns: 100.0 (prior 201), 100.0 (prior 202)" in said


def test_claims_about_bodies_are_judged_by_the_numbers():
    """Every run has a policy that costs 20 of 15 and one mean return, 120, against recorded ones of 80 and 120."""
    everything = ARMS["deep-bodies"]()
    found = {e.expected: e for e in deep_bodies._expectations(study(everything))}
    safe = "quadruped: no policy that sbsrl executes has a true mean cost above the budget"
    assert (found[safe].met, found[safe].measured) == (False, "2 of 6, largest 20.0")
    assert {e.expected: e.met for e in deep_bodies._expectations(study(everything, dear=15.0))}[safe]
    better = "quadruped: the last policies of sbsrl earn 1.03 times what the behaviour does, on average"
    assert (found[better].met, found[better].measured) == (True, "1.20, runs 1.20, 1.20")
    outside = [e for e in found.values() if "quadruped: the 95 % interval" in e.expected]
    assert [e.met for e in outside] == [False]  # 120 is not above 120
    assert not found["go to goal: the last policies of sbsrl earn 1.5 times what the behaviour does, on average"].met


def test_the_oracle_is_its_best_policy_that_keeps_the_budget():
    assert _best(run().records) == 160.0
    assert _best(run(dear=15.0).records[:2]) == 120.0


def test_as_many_priors_as_are_asked_for():
    numbers = Numbers((601, 602), 6000)
    assert numbers.chosen(None) == (601, 602)
    assert numbers.chosen(5) == (601, 602, 603, 604, 605)
    assert Request("deep-mean", priors=5, seeds=5).command == "sbsrl reproduce deep-mean --priors 5 --seeds 5"


def test_a_prior_is_data_and_an_offline_phase_of_its_own():
    ours = arm("sbsrl", BINDING, data="careless:10")
    one, other = (with_prior(ours, prior).specification(2000, "cpu") for prior in (201, 202))
    assert (one.settings.run.data, one.settings.run.offline_seed) == ("careless:10:201", 201)
    assert (other.settings.run.data, other.settings.run.offline_seed) == ("careless:10:202", 202)
    assert world_of(with_prior(ours, 201)) == BINDING


def test_an_arm_is_compared_with_the_oracle_under_its_own_budget():
    """With d = 5 known dynamics earn less, which is what 1 means there."""
    usual, strict = arm("sbsrl", BINDING), arm("sbsrl, d = 5", BINDING, budget=5.0)
    assert oracle_of(usual) == oracle(BINDING) != oracle_of(strict)
    assert with_prior(oracle_of(strict), 201).specification(2000, "cpu").settings.run.budget == (5.0,)
    made = Study({usual: [run()], strict: [run()]}, {oracle_of(usual): 260.0, oracle_of(strict): 160.0})
    np.testing.assert_allclose([made.final(usual)[0], made.final(strict)[0]], [0.5, 1.0])


def test_the_page_says_what_0_and_1_are_for_every_arm():
    """Clones of 10 and of 25 episodes, and both budgets."""
    few, strict = arm("few", BINDING, data="careless:10"), arm("strict", BINDING, budget=5.0)
    made = study([few, strict])
    made = made._replace(oracles={oracle_of(few): 260.0, oracle_of(strict): 160.0})
    said = _scale(made, [few, strict])
    assert "60 at cost 1 (10 episodes, prior 201)" in said
    assert "60 at cost 1 (25 episodes, prior 202)" in said
    assert "1 is 260 (d = 15), 160 (d = 15)." in said  # the budget is that of the made-up ledger
    assert said.endswith("that keeps the budget earns 160.")


def test_a_preset_to_see_that_it_works_makes_everything_small():
    pole = with_prior(arm("sbsrl", WORLDS["cartpole"]), 201, "smoke").specification(2000, "smoke").settings
    assert (pole.run.episodes, pole.run.data) == (3, "pump:25:201")
    assert pole.solver.offline_blocks == 2
    known = with_prior(oracle(BINDING), 201, "smoke").specification(2000, "smoke").settings
    assert known.run.episodes == 3


@pytest.mark.parametrize("name", ARMS)
def test_what_is_compared_can_be_run_and_told_apart(name):
    arms = ARMS[name]()
    specs = {with_prior(each, 201).specification(2000, "cpu") for each in arms}
    assert len(specs) == len(arms)
    assert len({(world_of(each), each.label) for each in arms}) == len(arms)
    judged = {with_prior(each, 201).specification(2000, "cpu").settings.run.judged for each in arms}
    assert judged <= {world.judged for world in ALL.values()}


@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_the_oracle_of_every_world_can_be_run(world):
    spec = with_prior(oracle(world), 201).specification(2000, "cpu")
    assert (spec.method, spec.settings.solver.trust) == ("oracle", 0.0)


@pytest.mark.parametrize("name", ARMS)
def test_a_figure_is_a_picture_a_page_and_every_episode(name, monkeypatch):
    monkeypatch.setattr(MODULES[name], "run_deep", lambda request, arms, numbers=(): study(arms))
    made = FIGURES[name].draw(Request(name, seed=7))
    pictures = {f"{name}.png", *MORE.get(name, ())}
    assert set(made) == {"README.md", "episodes.csv", *pictures}
    for picture in pictures:
        pixels = matplotlib.image.imread(io.BytesIO(made[picture]))
        assert min(pixels.shape[:2]) > 500
        assert pixels[..., :3].std() > 0.05
    rows = list(csv.DictReader(io.StringIO(made["episodes.csv"].decode())))
    assert len(rows) == 6 * len(ARMS[name]())
    assert {row["true_cost"] for row in rows} == {"5", "20", "15"}
    page = made["README.md"].decode()
    assert f"`sbsrl reproduce {name} --seed 7`" in page
    assert all(f"| {each.label} |" in page for each in ARMS[name]())


def test_claims_are_judged_by_the_numbers():
    """With a policy that costs 20 of 15 it is not safe; with one that costs 15 it is, and no longer worse than mean."""
    arms = ARMS["deep-mean"]()
    unsafe = {e.expected: e for e in deep_mean._expectations(study(arms))}
    claim = f"{BINDING.name}: no policy that sbsrl executes has a true mean cost above the budget"
    assert not unsafe[claim].met
    assert unsafe[claim].measured == "2 of 6, largest 20.0"
    assert {e.expected: e.met for e in deep_mean._expectations(study(arms, dear=15.0))}[claim]
    mixed = study(arms)
    ours = deep_mean.arms(BINDING)[0]
    better = mixed._replace(runs={**mixed.runs, ours: [run(dear=9.0)]})
    fewer = f"{BINDING.name}: sbsrl executes fewer violating policies than mean"
    assert not unsafe[fewer].met
    assert {e.expected: e.met for e in deep_mean._expectations(better)}[fewer]


def test_claims_about_other_methods_are_judged_by_the_numbers():
    """All alike, one of three policies violates: nobody is safer than sbsrl."""
    everything = ARMS["deep-baselines"]()
    same = {e.expected: e for e in deep_baselines._expectations(study(everything))}
    fewest = f"{BINDING.name}: no method executes fewer violating policies than sbsrl"
    assert same[fewest].met
    assert same[fewest].measured == "sbsrl 2, actor-critic 2, mean 2, mbpo 2, sooper 2, sooper, planned 2 of 6"
    assert same[f"{BINDING.name}: sbsrl earns no less than sooper at the end, and is as safe"].met
    arms, mixed = deep_baselines.arms(BINDING), study(everything)
    safer = mixed._replace(runs={**mixed.runs, arms["sooper"]: [run(dear=9.0), run(202, dear=9.0)]})
    judged = {e.expected: e for e in deep_baselines._expectations(safer)}
    assert not judged[fewest].met
    assert not judged[f"{BINDING.name}: sbsrl earns no less than sooper at the end, and is as safe"].met


def test_what_the_monitor_removes_is_judged_by_the_numbers():
    """All alike it removes nothing; a run under watch without violations is what it promises."""
    everything, pair = ARMS["deep-monitor"](), deep_monitor.arms(BINDING)["mbpo"]
    policies = f"{BINDING.name}: no policy of mbpo violates under watch"
    episodes = f"{BINDING.name}: fewer episodes of mbpo cost more than the budget under watch, if any did"
    same = {e.expected: e for e in deep_monitor._expectations(study(everything))}
    assert not same[policies].met
    assert not same[episodes].met
    assert same[f"{BINDING.name}: the monitor costs sbsrl at most a tenth of what is to be learned"].met
    quiet = run(dear=9.0)._replace(records=[r._replace(safe=True) for r in run(dear=9.0).records])
    mixed = study(everything)
    mixed = mixed._replace(runs={**mixed.runs, pair[1]: [quiet, quiet]})
    judged = {e.expected: e for e in deep_monitor._expectations(mixed)}
    assert judged[policies].met
    assert judged[policies].measured == "0 of 6, without the monitor 2"
    assert judged[episodes].met


def test_interventions_and_their_price_are_counted_by_hand():
    """In one of three episodes of each of two runs another policy acted, in half of the steps."""
    (plain, watched_arm), made = deep_monitor.arms(BINDING)["mbpo"], study(ARMS["deep-monitor"]())
    watched = [
        r._replace(metrics={**r.metrics, "intervened": 0.5 * (r.episode == 1), "true_interventions": 0.25})
        for r in run().records
    ]
    runs = [run()._replace(records=watched)] * 2
    made = made._replace(runs={**made.runs, watched_arm: runs})
    table = interventions_table(made, [plain, watched_arm])
    (line,) = (line for line in table.splitlines() if line.startswith("| mbpo, monitor |"))
    assert "| 2 of 6 | 16.7 % | 25.0 % | 0.000 |" in line
    assert "| mbpo | - | - | - | - |" in table


def test_how_long_a_return_takes_is_counted_by_hand():
    """Returns of 0.1, 0.3, 0.5: a quarter is there after one episode, a half after two, three quarters never."""
    arms, made = deep_baselines.arms(BINDING), study(ARMS["deep-baselines"]())
    slow = [run()._replace(offline={**run().offline, "seconds": 30.0})] * 2
    made = made._replace(runs={**made.runs, arms["sbsrl"]: slow})
    per_episode = run().records[0].seconds
    assert deep_baselines._until(made, arms["sbsrl"], 0.25) == [(1, 30.0 + 2 * per_episode)] * 2
    assert deep_baselines._until(made, arms["sbsrl"], 0.5) == [(2, 30.0 + 3 * per_episode)] * 2
    assert deep_baselines._median(deep_baselines._until(made, arms["sbsrl"], 0.75)) == "-"


def test_the_mean_is_matched_by_its_return():
    """Of the plain one and the tightened, that whose late return is nearest to 0.3."""
    made = study(ARMS["deep-calibration"]())
    nearest = deep_calibration.TIGHTENED[0]
    far = [run()._replace(offline={"clone/true_return": -300.0, "clone/true_cost": 0.0})]
    others = {each: far for each in (deep_calibration.MEAN, *deep_calibration.TIGHTENED) if each != nearest}
    claim = deep_calibration._matched(made._replace(runs={**made.runs, **others}))
    assert claim.measured.startswith(f"{nearest.label} earns 0.30 against 0.30: 2 against 2")
    assert not claim.met
