"""Runs the notebooks and writes what they show back into them.

    python notebooks/execute.py              # all of them
    python notebooks/execute.py plug-in      # one

Each runs in an empty folder, so that nothing it writes stays, and none finds what another has left. It needs
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
SECONDS = 600  # for one cell, on a machine that is busy with other things
COLOURS = 128  # of a picture, which then takes a third of the room and looks the same


def notebooks() -> list[Path]:
    """The notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """A notebook with what it shows when it is run from top to bottom.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-", ignore_cleanup_errors=True) as folder:
        manager = AsyncKernelManager(kernel_name="python3")
        if os.name == "posix":  # sockets in the folder, and no port that others can reach
            manager.transport, manager.ip = "ipc", str(Path(folder, "kernel"))
        client = NotebookClient(notebook, km=manager, timeout=SECONDS, resources={"metadata": {"path": folder}})
        client.execute(env={**os.environ, "IPYTHONDIR": str(Path(folder, ".ipython"))})  # no one's own start-up files
    return tidied(notebook)


def tidied(notebook: NotebookNode) -> NotebookNode:
    """The same without what differs from run to run, such as times, and with printed lines together."""
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
    """Outputs with what was printed in pieces, as they came, in one piece."""
    found: list[NotebookNode] = []
    for output in outputs:
        last = found[-1] if found else None
        if last and output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def _smaller(picture: str) -> str:
    """A PNG in base64, with few colours."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    file = io.BytesIO()
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main(names: list[str]) -> None:
    """Run and rewrite the notebooks of these names, or all."""
    known = {path.stem: path for path in notebooks()}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"There is no notebook {', '.join(unknown)}; there are {', '.join(known)}.")
    for name in names or known:
        started = time.perf_counter()
        nbformat.write(executed(known[name]), known[name])
        print(f"{name}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
