"""Every tensor that icy makes has a named device, and a named dtype where PyTorch's default would decide.

A program around icy may have set other defaults (torch.set_default_dtype, torch.set_default_device). Parameters follow
these, as those of PyTorch's own modules do: what a module makes in `__init__` or as a parameter is not looked at.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLOATS = {"tensor", "zeros", "ones", "empty", "linspace", "logspace", "eye", "rand", "randn", "full", "empty_strided"}
WHOLES = {"arange", "randint", "randperm", "tril_indices", "triu_indices"}  # int64 for whole numbers, whatever is set


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield all calls below a node, except in `__init__` of a module or a cell, or in a parameter."""
    if isinstance(node, ast.Call):
        yield node
        if isinstance(node.func, ast.Attribute) and node.func.attr == "Parameter":
            return
    names = {child.name for child in ast.iter_child_nodes(node) if isinstance(child, ast.FunctionDef)}
    for child in ast.iter_child_nodes(node):
        of_module = isinstance(node, ast.ClassDef) and names & {"forward", "step"}
        if not (of_module and isinstance(child, ast.FunctionDef) and child.name == "__init__"):
            yield from calls(child)


def tensors_without(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, function and missing argument of every call that makes a tensor by a default."""
    for call in calls(tree):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), keywords=keywords):
                given = {keyword.arg for keyword in keywords}
                if name in FLOATS | WHOLES and not {"out", None} & given:  # None: **kwargs
                    if "device" not in given:
                        yield call.lineno, name, "device"
                    if name in FLOATS and "dtype" not in given:
                        yield call.lineno, name, "dtype"


def test_the_check_sees_what_is_missing() -> None:
    code = (
        "class M:\n def __init__(self): torch.zeros(2)\n def forward(self, x): return torch.zeros(2, device=x.device)"
    )
    assert list(tensors_without(ast.parse(code))) == [(3, "zeros", "dtype")]


def test_tensors_have_a_named_dtype_and_device() -> None:
    paths = (path for folder in ("icy", "models", "grammars", "analysis") for path in (ROOT / folder).rglob("*.py"))
    codes = {path: code for path in paths if "torch." in (code := path.read_text(encoding="utf-8"))}
    assert len(codes) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line} torch.{name} lacks {missing}="
        for path, code in codes.items()
        for line, name, missing in tensors_without(ast.parse(code))
    ]
    assert not found, "\n".join(sorted(found))
