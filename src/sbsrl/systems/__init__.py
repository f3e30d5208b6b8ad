"""The boundary to the true system: environments of Gymnasium with the cost of a step in `info["cost"]`.

Importing it registers the package's own tasks with Gymnasium and loads nothing else.
"""

from .registration import register

register()
