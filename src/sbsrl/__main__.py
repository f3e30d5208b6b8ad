"""`python -m sbsrl` is `sbsrl`."""

import sys

from .cli import main

sys.exit(main())
