"""`python -m stringd` is the `stringd` command."""

import sys

if not sys.flags.safe_path:
    # Python looks for modules first where it is started, which may be anybody's clone.
    del sys.path[0]

from stringd.cli.main import main

raise SystemExit(main())
