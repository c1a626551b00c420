"""`python -m logkernel`."""

import sys

from logkernel.cli import main

sys.exit(main())
