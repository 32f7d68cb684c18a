"""`python -m stringd` is the `stringd` command."""

from stringd.cli.main import main

raise SystemExit(main())
