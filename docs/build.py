"""Build the site: `python docs/build.py [FOLDER]`, by default into docs/_build/html. A warning is an error.

It needs `pip install -c constraints.txt -e ".[docs]"`, and no network.
"""

import sys
from pathlib import Path

from sphinx.cmd.build import main

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else str(HERE / "_build")
    strict = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    folders = ["-d", f"{out}/doctrees", str(HERE), f"{out}/html"]
    failed = main([*strict, "-b", "html", *folders])
    print(f"The site was not built: {failed}." if failed else f"The site is {out}/html/index.html.")
    sys.exit(failed)
