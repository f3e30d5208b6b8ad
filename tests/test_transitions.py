"""Episodes are found again in the transitions they consist of."""

import numpy as np

from sbsrl.transitions import Episode, Transitions, split_episodes


def episode(steps, first, ended="horizon"):
    states = first + np.arange(steps + 1.0)[:, None]
    return Episode(states, np.zeros((steps, 1)), np.ones(steps), np.zeros((steps, 2)), ended)


def joined(*parts):
    return Transitions(*(np.concatenate(columns) for columns in zip(*(p.transitions for p in parts), strict=True)))


def test_episodes_are_split_where_the_state_jumps():
    parts = episode(3, 0.0), episode(1, 10.0), episode(5, 20.0)
    found = split_episodes(joined(*parts))
    assert [len(each.actions) for each in found] == [3, 1, 5]
    for one, other in zip(found, parts, strict=True):
        for a, b in zip(one, other.transitions, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_terminal_state_ends_an_episode_even_if_the_next_begins_there():
    parts = episode(3, 0.0, "terminated"), episode(2, 3.0)
    assert [len(each.actions) for each in split_episodes(joined(*parts))] == [3, 2]


def test_nothing_is_no_episode():
    assert split_episodes(episode(0, 0.0).transitions) == []
