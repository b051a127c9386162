"""Run the notebooks and store their outputs in them.

    python notebooks/execute.py              # all of them
    python notebooks/execute.py plug-in      # one

Each runs in a temporary folder, so that nothing it writes stays or is found by another. Needs
`pip install -c constraints.txt -e ".[notebooks]"`.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

FOLDER = Path(__file__).parent
SECONDS = 600  # limit for one cell, on a busy machine
COLOURS = 128  # of a picture, which then takes a third of the space and looks the same


def notebooks() -> list[Path]:
    """Return the notebooks, sorted by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """Return a notebook with its outputs when it is run from top to bottom.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-", ignore_cleanup_errors=True) as folder:
        manager = AsyncKernelManager(kernel_name="python3")
        if os.name == "posix":  # sockets in the folder, so that no port is open to others
            manager.transport, manager.ip = "ipc", str(Path(folder, "kernel"))
        client = NotebookClient(notebook, km=manager, timeout=SECONDS, resources={"metadata": {"path": folder}})
        # No start-up files of the user, and no progress, which has times in it.
        client.execute(env={**os.environ, "IPYTHONDIR": str(Path(folder, ".ipython")), "ICY_PROGRESS": "0"})
    return tidied(notebook)


def tidied(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without what varies between runs, such as times, and with printed lines joined."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            for output in cell.outputs:
                if picture := output.get("data", {}).get("image/png"):
                    output.data["image/png"] = _smaller(picture)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.validate(notebook)
    return notebook


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs with consecutive printed pieces joined."""
    found: list[NotebookNode] = []
    for output in outputs:
        last = found[-1] if found else None
        if last and output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def _smaller(picture: str) -> str:
    """Return a PNG in base64 with few colors."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    file = io.BytesIO()
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main(names: list[str]) -> None:
    """Run and rewrite the notebooks with these names, or all."""
    known = {path.stem: path for path in notebooks()}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"There is no notebook {', '.join(unknown)}; there are {', '.join(known)}.")
    for name in names or known:
        started = time.perf_counter()
        nbformat.write(executed(known[name]), known[name])
        print(f"{name}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
