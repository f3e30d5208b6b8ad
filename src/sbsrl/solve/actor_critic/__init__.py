"""The paper's own solver: a soft actor-critic with critics for every sample."""
