"""The packaging of icy. Settings of the tools are in pyproject.toml.

The top-level folders models/, grammars/ and analysis/ are installed as icy.models, icy.grammars and icy.analysis, so no
package with one of these common names is put into site-packages. Links with the same names inside icy/ show the same
tree to everything that reads files: an interpreter without an install, type checkers, editors. src/ only holds a link
to icy/: an editable install adds src/ to Python's path.

Folders named native/ hold C++ sources. icy/core/native/build.py builds a library from each if it can.
"""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).parent

# Each lower bound is a version that passes the tests; `.ci/lowest FOLDER` installs these versions to check it.
REPORT = ["jinja2>=3.1.2", "vl-convert-python>=1.6"]  # templates, and Vega in one file, for `icy report`
SEARCH = ["optuna>=4.0"]  # its samplers and importances; SQLAlchemy comes with it
STUDY = [
    "idna>=3.0",  # names of sites with non-ASCII letters, as browsers write them
    "jinja2>=3.1.2",
    "markdown-it-py>=3.0",
    "python-multipart>=0.0.18",
    "starlette>=1.6",  # middleware.body_limit
    "uvicorn>=0.30",
]
TEXT = ["httpx>=0.27", "tenacity>=8.2.3"]  # the client of text servers

FOLDERS = {"icy": "icy", "icy.models": "models", "icy.grammars": "grammars", "icy.analysis": "analysis"}


def module(path: Path) -> ModuleType:
    """Load a module by its path, because icy cannot be imported yet."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is missing")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


native = module(ROOT / "icy" / "core" / "native" / "build.py")


def packages() -> list[str]:
    """List every package once, although find_packages finds icy.models twice through the links."""
    found = [p for name, folder in FOLDERS.items() for p in (name, *(f"{name}.{sub}" for sub in find_packages(folder)))]
    return list(dict.fromkeys(found))


class EditableWheel(editable_wheel):
    """An editable install by a path. Type checkers and editors follow a path, but do not run an import hook.

    For folders that do not have the names of their packages, setuptools uses a hook. It still does on checkouts without
    links, such as on Windows.
    """

    def finalize_options(self) -> None:
        """Take every package from src/."""
        if (ROOT / "src" / "icy" / "models" / "__init__.py").is_file():
            self.distribution.package_dir = {"": "src"}
        super().finalize_options()


def native_libraries() -> list[Extension]:
    """Return the libraries to build, by package and file, with their sources; an sdist takes the sources from here."""
    common = [native.COMMON / file for file in native.EXTRA]
    found = []
    for name, folder in FOLDERS.items():
        for place, _, _ in os.walk(ROOT / folder):  # without following links
            path = Path(place)
            if path.name == "native" and path != native.COMMON and native.sources(path):
                package = ".".join([name, *path.relative_to(ROOT / folder).parts])
                sources = [str(file.relative_to(ROOT)) for file in (*native.sources(path), *common)]
                headers = [
                    str(file.relative_to(ROOT)) for file in (*native.headers(path), native.COMMON / native.EXPORTS)
                ]
                found.append(Extension(f"{package}.{Path(native.LIBRARY).stem}", sources, depends=headers))
    return found


class BuildNative(build_ext):
    """Build the native libraries, and print one line for each; icy works without libraries that cannot be built."""

    def run(self) -> None:
        """Build into the folders of the sources (editable installs, --inplace), or into the folder of a wheel."""
        for built, in_place, sources in self._folders():
            scratch = ROOT / "build" / "native" / sources.relative_to(ROOT)
            print(native.build(sources, in_place if self.inplace else built, scratch), flush=True)

    def _folders(self) -> list[tuple[Path, Path, Path]]:
        """Return for each library its folder in a wheel, its folder in place, and the folder of its sources."""
        build_py = self.get_finalized_command("build_py")
        packages = [extension.name.rpartition(".")[0] for extension in self.extensions]
        sources = [(ROOT / extension.sources[0]).parent for extension in self.extensions]
        return [
            (Path(self.build_lib, *package.split(".")), Path(build_py.get_package_dir(package)), folder)
            for package, folder in zip(packages, sources, strict=True)
        ]

    def get_output_mapping(self) -> dict[str, str]:
        """Map each path in a wheel to the path in an editable install."""
        files = (native.LIBRARY, native.NOTE)
        pairs = [(built / file, here / file) for built, here, _ in self._folders() for file in files]
        return {str(built): str(here) for built, here in pairs if here.exists()} if self.inplace else {}

    def get_outputs(self) -> list[str]:
        """Return the built files."""
        files = (native.LIBRARY, native.NOTE)
        there = [str(built / file) for built, _, _ in self._folders() for file in files if (built / file).exists()]
        return list(self.get_output_mapping()) if self.inplace else there


class Wheel(bdist_wheel):
    """A wheel for any Python; for one kind of machine if it holds a native library, otherwise for all."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tags of Python, of its binary interface (which ctypes does not need), and of the machine."""
        self.root_is_pure = not any(Path(self.bdist_dir).rglob(native.LIBRARY))
        return "py3", "none", "any" if self.root_is_pure else super().get_tag()[2]


def version() -> str:
    """Read the version without importing icy, because its dependencies may not be installed yet."""
    text = (ROOT / "icy" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise RuntimeError('icy/version.py has no line of the form __version__ = "1.2.3"')
    return found.group(1)


def readme() -> str:
    """Return the long description."""
    file = ROOT / "README.md"
    return file.read_text(encoding="utf-8") if file.exists() else ""


setup(
    name="icy-toolkit",
    version=version(),
    description="Measure which composition functions a neural architecture learns easily, and which are hard.",
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
    cmdclass={"bdist_wheel": Wheel, "build_ext": BuildNative, "editable_wheel": EditableWheel},
    ext_modules=native_libraries(),
    package_dir=FOLDERS,
    packages=packages(),
    package_data={
        "icy": ["py.typed", "**/*.pyi", "**/*.safetensors"],
        "icy.analysis": ["**/*.pyi", "**/*.csv", "**/*.json", "**/*.parquet", "**/*.toml"],
        "icy.analysis.report": ["web/*"],
        "icy.study": ["*.toml"],
        "icy.study.service": ["documents/*"],
        "icy.study.service.web": ["static/*", "templates/*", "texts/*"],
    },
    entry_points={"console_scripts": ["icy=icy.cli:main"]},
    python_requires=">=3.11",
    install_requires=[
        "click>=8.3",  # the test runner of 8.2 never ends the input
        "filelock>=3.13.1",
        "gymnasium>=1.1",  # AutoresetMode
        "jaxtyping>=0.3.2",  # 0.2.28 fails at import
        "jinja2>=3.1.2",  # with which pandas writes LaTeX
        "joblib>=1.3.2",
        "lazy-loader>=0.4",
        "matplotlib>=3.8.4",
        "msgspec>=0.18.6",
        "numpy>=1.26.4",
        "pandas>=2.2.3",
        "pettingzoo>=1.27",  # its registry of environments
        "pillow>=10.3.0",
        "pyarrow>=15.0.2",
        "rapidfuzz>=3.8",  # process.cpdist
        "rich>=13.7.1",
        "safetensors>=0.4.3",
        "scikit-learn>=1.4.2",
        "scipy>=1.11.4",  # for censored data
        "threadpoolctl>=3.2.0",
        "torch>=2.6",
    ],
    extras_require={
        "study": STUDY,
        "test": [
            *REPORT,
            *SEARCH,
            *STUDY,
            *TEXT,
            "beartype>=0.19",
            "build>=1.2",
            "hypothesis>=6.100",
            "import-linter>=2.1",
            "mypy>=2.0",
            "pandas-stubs>=3.0",
            "pytest>=9.0.1",  # for subtests; 9.0.0 treats unittest.SkipTest as a failure
            "pytest-xdist>=3.6",
            "pyyaml>=6.0.1",
            "ruff>=0.15",
            "sb3-contrib>=2.4",  # another project's trainer, which must run on S2B unchanged
            "scipy-stubs>=1.17",
            "setuptools>=77",  # tests/test_packaging.py builds a wheel without network access
            "tensorboard>=2.17",
            "wheel>=0.43",
        ],
        "browser": ["axe-playwright-python>=0.1.4", "playwright>=1.48"],  # the system provides the browser
        "docs": [*REPORT, "furo>=2025.12.19", "myst-parser>=5", "sphinx>=9", "sphinx-copybutton>=0.5.2"],
        "interop": [  # libraries of other trainers, which must run on the environments of S2B unchanged
            "dm-tree>=0.1.9",  # RLlib imports it; its own extra pins an older gymnasium
            "ray>=2.44",
            "sb3-contrib>=2.4",
            "supersuit>=3.10",
            "torchrl>=0.14",
        ],
        "notebooks": ["ipykernel>=6.29", "nbclient>=0.10", "nbformat>=5.10"],
        "ray": ["ray>=2.44"],
        "report": REPORT,
        "search": SEARCH,
        "text": TEXT,
        "tensorboard": ["tensorboard>=2.17"],
        "transformers": ["transformers>=4.46"],  # text models on this machine
        "mlflow": ["mlflow>=3.7"],
        "wandb": ["wandb>=0.20"],
        "tracking": ["tensorboard>=2.17", "mlflow>=3.7", "wandb>=0.20"],
        "triton": ["triton>=3.2; sys_platform == 'linux'"],  # for the GPU kernels
        "yaml": ["pyyaml>=6.0.1"],
    },
)
