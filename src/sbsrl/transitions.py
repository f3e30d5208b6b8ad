"""What was observed of the true system: transitions, and whole episodes."""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["Ending", "Episode", "Transitions", "begin_episodes", "nothing_played", "split_episodes"]

Ending = Literal["horizon", "terminated", "truncated", "fault", "interrupted"]
"""How an episode ended: after T steps; in a terminal state of the system, after which nothing is earned or charged;
cut short by the system, which would have gone on; because the system failed; because the user stopped it."""


class Transitions(NamedTuple):
    """Data (x_t, a_t, x_{t+1}) of the true system, with what each transition earned and cost."""

    states: Float[np.ndarray, "N dx"]
    actions: Float[np.ndarray, "N da"]
    next_states: Float[np.ndarray, "N dx"]
    rewards: Float[np.ndarray, " N"]
    costs: Float[np.ndarray, "N k"]
    terminated: Bool[np.ndarray, " N"]
    """Whether the system ended the episode there: the value of the next state is then 0."""


class Episode(NamedTuple):
    """What really happened in one episode on the true system: T steps, fewer if it ended early."""

    states: Float[np.ndarray, "T1 dx"]
    actions: Float[np.ndarray, "T da"]
    rewards: Float[np.ndarray, " T"]
    costs: Float[np.ndarray, "T k"]
    ended: Ending = "horizon"
    reason: str = ""
    """In words, where the system failed."""

    @property
    def transitions(self) -> Transitions:
        terminated = np.zeros(len(self.actions), bool)
        if self.ended == "terminated":
            terminated[-1:] = True
        return Transitions(self.states[:-1], self.actions, self.states[1:], self.rewards, self.costs, terminated)


def nothing_played(states: int, actions: int, costs: int, reason: str) -> Episode:
    """The episode of a system that could not be reset."""
    nothing = np.zeros((0, states)), np.zeros((0, actions)), np.zeros(0), np.zeros((0, costs))
    return Episode(*nothing, ended="fault", reason=reason)


def split_episodes(data: Transitions) -> list[Transitions]:
    """The episodes that transitions in their order come from."""
    if not len(data.actions):
        return []
    begins = np.flatnonzero(begin_episodes(data))
    return [Transitions(*parts) for parts in zip(*(np.split(part, begins[1:]) for part in data), strict=True)]


def begin_episodes(data: Transitions) -> Bool[np.ndarray, " N"]:
    """Which transitions, in their order, begin an episode: those whose state is not the one that the last led to."""
    goes_on = np.all(data.states[1:] == data.next_states[:-1], axis=1) & ~data.terminated[:-1]
    return ~np.concatenate([[False], goes_on])
