"""What `trn-sim validate` starts: this folder, by its path, with the words of its command line."""

import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.dirname(os.path.dirname(here))
    from trnsim.validation.command import main

    sys.exit(main())
