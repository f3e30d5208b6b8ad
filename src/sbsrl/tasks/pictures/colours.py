"""The colours of all drawings of tasks."""

__all__ = ["BODY", "EDGE", "FORBIDDEN", "GOAL", "GROUND", "PAPER", "ROD", "TRAIL"]

PAPER, GROUND, EDGE = "#FBFAF7", "#CDCCC7", "#85847F"
BODY, ROD, TRAIL = "#1D6996", "#3A3A3A", "#2F7FB570"
GOAL, FORBIDDEN = "#4B9B63", "#C8102E"
