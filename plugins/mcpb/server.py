"""What a desktop client starts from the bundle: the same as `stringd mcp`."""

import os
import sys

from stringd.cli.main import main

if __name__ == "__main__":
    # The client starts us in the bundle, which is nobody's project.
    os.chdir("/")
    sys.argv[1:] = ["mcp"]
    sys.exit(main())
