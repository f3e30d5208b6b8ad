"""A method of your own: Problem (1) with a budget that opens slowly, 0.8 of it at first.

sbsrl train pendulum --method own_method:METHOD
"""

from sbsrl.methods import Method
from sbsrl.methods import sbsrl as every_sample


def patient(context):
    """Safe on every sample, within a share of the budget that grows with the episodes."""
    problem = every_sample(context)
    return problem.bounded(problem.bounds * (1 - 0.2 * 0.5**context.episode))


METHOD = Method("patient", "a budget that opens slowly", patient, explores=True, cautious=True)
