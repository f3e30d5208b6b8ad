"""`python -m sbsrl` is `sbsrl`."""

import sys

from .entry import main

sys.exit(main())
