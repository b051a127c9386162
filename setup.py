"""How icy is packaged. Settings of the tools stand in pyproject.toml.

The top-level folders models/, grammars/ and analysis/ are installed as icy.models, icy.grammars and icy.analysis, so
that no package of such a common name lands in anyone's site-packages. The links of the same names inside icy/ show
the same tree to everything that reads files: an interpreter without install, type checkers, editors. src/ holds a link
to icy/ and nothing else: an editable install adds it to Python's path.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent

FOLDERS = {"icy": "icy", "icy.models": "models", "icy.grammars": "grammars", "icy.analysis": "analysis"}


def packages() -> list[str]:
    """Every package once, though the links let find_packages meet icy.models twice."""
    found = [p for name, folder in FOLDERS.items() for p in (name, *(f"{name}.{sub}" for sub in find_packages(folder)))]
    return list(dict.fromkeys(found))


class EditableWheel(editable_wheel):
    """An editable install by a path, which type checkers and editors follow; they do not run an import hook.

    setuptools uses a hook for folders of other names than their packages. Where links are no links, as in a checkout on
    Windows without them, it still does.
    """

    def finalize_options(self) -> None:
        """Take every package from src/."""
        if (ROOT / "src" / "icy" / "models" / "__init__.py").is_file():
            self.distribution.package_dir = {"": "src"}
        super().finalize_options()


def version() -> str:
    """The version, read without importing icy, since its dependencies may not be installed yet."""
    text = (ROOT / "icy" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise RuntimeError('icy/version.py holds no line of the form __version__ = "1.2.3"')
    return found.group(1)


def readme() -> str:
    """The long description."""
    file = ROOT / "README.md"
    return file.read_text(encoding="utf-8") if file.exists() else ""


setup(
    name="icy-toolkit",
    version=version(),
    description="Measure which composition functions a neural architecture learns easily, and which not.",
    long_description=readme(),
    long_description_content_type="text/markdown",
    author="The icy developers",
    license="MIT",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    cmdclass={"editable_wheel": EditableWheel},
    package_dir=FOLDERS,
    packages=packages(),
    package_data={"icy": ["py.typed"], "icy.analysis": ["**/*.csv", "**/*.json", "**/*.parquet", "**/*.toml"]},
    entry_points={"console_scripts": ["icy=icy.cli:main"]},
    python_requires=">=3.11",
    install_requires=[
        "click",
        "gymnasium>=1.0",
        "jaxtyping",
        "joblib",
        "matplotlib",
        "numpy",
        "pandas",
        "pettingzoo>=1.27",
        "pillow",
        "pyarrow",
        "rapidfuzz",
        "rich",
        "safetensors",
        "scikit-learn",
        "scipy>=1.11",  # for censored data
        "torch>=2.6",
    ],
    extras_require={
        "test": [
            "beartype",
            "build",
            "hypothesis",
            "mypy",
            "pandas-stubs",
            "pytest",
            "pytest-xdist",
            "pyyaml",
            "ruff",
            "sb3-contrib",  # a stranger's trainer, which must run on S2B unchanged
            "scipy-stubs",
            "setuptools>=77",  # tests/test_packaging.py builds a wheel without fetching anything
            "tensorboard",
            "wheel",
        ],
        "docs": ["furo", "myst-parser>=5", "sphinx>=9", "sphinx-copybutton"],
        "notebooks": ["ipykernel", "nbclient", "nbformat"],
        "ray": ["ray"],
        "tensorboard": ["tensorboard"],
        "mlflow": ["mlflow>=3.7"],
        "wandb": ["wandb>=0.20"],
        "tracking": ["tensorboard", "mlflow>=3.7", "wandb>=0.20"],
        "yaml": ["pyyaml"],
    },
)
