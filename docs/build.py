"""Build the site into docs/_build/html: `python docs/build.py`. A warning is an error.

It needs `pip install -c constraints.txt -e ".[docs]"`, and no network. Further arguments go to sphinx-build.
"""

import sys
from pathlib import Path

from sphinx.cmd.build import main

HERE = Path(__file__).resolve().parent
STRICT = ["--fail-on-warning", "--keep-going", "--nitpicky"]

if __name__ == "__main__":
    sys.exit(main([*STRICT, *sys.argv[1:], "-b", "html", str(HERE), str(HERE / "_build" / "html")]))
