"""Runs that are interrupted."""

import pytest


class Interrupts:
    """An observer that presses Ctrl-C after so many steps, which may be in the middle of an episode."""

    def __init__(self, steps):
        self.left = steps
        self.notes = []

    def started(self, experiment, done, folder):
        pass

    def note(self, text):
        self.notes.append(text)

    def finished_episode(self, record):
        pass

    def stepped(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="session")
def interrupts():
    """The class: how many steps it waits is the test's to say."""
    return Interrupts
