"""The documentation describes everything in icy, and its code, commands and links work."""

import contextlib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pandas as pd
import pytest

import icy
from icy import testing
from icy.analysis.literature.catalogue import published_names
from icy.analysis.plots import KINDS
from icy.cli import COMMANDS, main
from icy.cli.options import Renamed, described
from icy.config.settings import PUBLISHED
from icy.core.registry import SIDES, registry
from icy.core.representations import REPRESENTATIONS
from icy.models.native import calls
from icy.records.record import Record
from tests.pages import (
    DOCS,
    GUIDES,
    PAGES,
    ROOT,
    code,
    commands,
    fenced,
    generated_parts,
    links,
    problem_of_command,
    problem_of_link,
    problem_of_python,
    sections,
    text,
)

sys.path.append(str(DOCS / "_ext"))

import gallery
import generated

SLOW_PARTS = ("grammar-measures",)
COMMANDS_OF_PLUG_INS = ("guess",)
PLUG_INS = ("docs/plug-ins.md", "docs/plug-ins-pytorch.md")


def arguments_of(page: str, part: str) -> list[list[str]]:
    """Return the name and arguments of each generated part with this name on a page."""
    return [words for _, line in generated_parts(page) if (words := shlex.split(line))[0] == part]


def block_of(page: str, first_line: str) -> str:
    """Return the Python block of a page that begins with a line."""
    (block,) = [block for block in code(page) if block.startswith(first_line)]
    return block


def dotted_names(found: str) -> list[str]:
    """Return the full names in a dotted name or in an import."""
    if not found.startswith("from"):
        return [found]
    module, _, names = found.removeprefix("from ").partition(" import ")
    return [f"{module}.{name.strip().partition(' ')[0]}" for name in names.split(",") if name.strip()]


def name_exists(name: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


# -- everything has its place ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", SIDES)
def test_every_model_has_a_section(side: str) -> None:
    page = "docs/model-equations.md"
    patterns = [pattern for _, *found in arguments_of(page, "models") for pattern in found]
    shown = [entry.qualified for entry in registry.match(patterns, *SIDES) if entry.kind == side]
    assert sorted(shown) == sorted(icy.list_models(f"{side}/*"))
    families = {name.partition("/")[2].partition(":")[0] for name in shown}
    first, end = {"sender": ("Senders", "Receivers"), "receiver": ("Receivers", "Cells")}[side]
    headings = " ".join(sections(page)[sections(page).index(first) : sections(page).index(end)])
    assert {name for name in families if name.removesuffix("2L") not in headings} == set()


def test_every_cell_has_a_section() -> None:
    cells = {entry.name for entry in registry.entries("cell")}
    assert {name for _, name in arguments_of("docs/model-equations.md", "cell-card")} == cells
    assert cells <= set(sections("docs/model-equations.md"))


def test_every_grammar_has_a_section_and_a_picture() -> None:
    grammars = set(icy.list_grammars())
    assert {name for _, name in arguments_of("docs/grammars.md", "grammar")} == grammars
    assert grammars <= set(sections("docs/grammars.md"))
    assert set(re.findall(r"_generated/grammar-(\w+)\.png", text("docs/grammars.md"))) == grammars


def test_every_metric_has_a_section() -> None:
    assert {name for _, name in arguments_of("docs/metrics-definitions.md", "metric")} == set(icy.list_metrics())
    assert set(icy.list_metrics()) <= set(sections("docs/metrics-definitions.md"))


def test_every_departure_is_described() -> None:
    assert arguments_of("docs/published-versus-corrected.md", "departures") == [["departures"]]
    output = generated.departures()
    for name, departure in PUBLISHED.items():
        assert f"| {name} |" in output
        assert departure.reason in output
        assert all(setting in output for setting in departure.settings)


def test_settings_of_the_preset_are_those_it_has() -> None:
    lines = {line.split("`")[1]: line for line in generated.training_settings().splitlines()[2:]}
    assert "| `None` | `50` |" in lines["check_every"]
    assert "| `0.1` |  |" in lines["check_growth"]
    assert "| `0.01` | `0.1` (one side alone) |" in lines["entropy_weight"]
    assert "| `False` | `True` (pairs) |" in lines["training_readings"]


def test_every_command_and_option_is_in_the_reference() -> None:
    assert arguments_of("docs/cli.md", "commands") == [["commands"]]
    output = generated.commands()
    context = click.Context(main, info_name="icy")
    for name in COMMANDS:
        command = main.get_command(context, name)
        names = command.list_commands(context) if isinstance(command, click.Group) else []
        inner = [command.get_command(context, one) for one in names] if isinstance(command, click.Group) else []
        for one, title in ((command, f"icy {name}"), *((i, f"icy {name} {i.name}") for i in inner)):
            section = re.search(rf"^#+ {title}\n(.*?)(?=^#+ icy |\Z)", output, re.MULTILINE | re.DOTALL)
            assert section is not None, title
            flags = {flag for p in one.params if isinstance(p, click.Option) for flag in p.opts if not p.hidden}
            flags -= {flag for p in one.params if isinstance(p, Renamed) for flag in p.old}  # accepted, not in the help
            assert {flag for flag in flags if flag not in section[1]} == set()
            assert "Examples:" in section[1]


def test_every_public_name_has_a_page() -> None:
    pages = [path.stem for path in (DOCS / "api").glob("*.md")]
    for name in ("metrics", "s2b", "games", "analysis", "models", "grammars", "testing"):
        assert f".. public:: icy.{name}" in text(f"docs/api/{name}.md")
        assert name in pages
    assert ".. public:: icy\n" in text("docs/api/icy.md")


def test_pages_of_groups_document_public_names_once() -> None:
    pattern = re.compile(r"^\.\. public:: (\S+)\n   :names: (.+)$", re.MULTILINE)
    found = [
        (package, name) for page in PAGES for package, names in pattern.findall(text(page)) for name in names.split()
    ]
    assert len(found) == len(set(found)) > 80
    assert not [(package, name) for package, name in found if name not in importlib.import_module(package).__all__]


def test_the_menu_is_short() -> None:
    top = [line for block in code("docs/index.md", "{toctree}") for line in block.splitlines() if line[:1].isalpha()]
    assert len(top) <= 40


def test_the_cards_of_the_gallery_have_a_command_and_a_page_that_exist() -> None:
    assert set(gallery.PLOTS) <= set(KINDS)
    for card in (*gallery.PLOTS.values(), *gallery.TASKS):
        if card.command.startswith("icy"):
            assert problem_of_command(card.command) == "", card
        assert problem_of_link("docs/gallery.md", card.page) == "", card
        assert card.picture.startswith("_generated/") or (DOCS / card.picture).is_file(), card


def test_public_signatures_hold_no_path_of_this_machine() -> None:
    found = {}
    for package in (name for page in PAGES for name in re.findall(r"^\.\. public:: (\S+)", text(page), re.MULTILINE)):
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            found[f"{package}.{name}"] = thing
            if inspect.isclass(thing):
                found |= {f"{package}.{name}.{part}": f for part, f in inspect.getmembers(thing, callable)}
    with_paths = []
    for name, thing in found.items():
        with contextlib.suppress(ValueError, TypeError):  # some types have no signature; some names are not functions
            shown = str(inspect.signature(thing))
            with_paths += [name] if str(ROOT) in shown or "PosixPath" in shown else []
    assert len(found) > 500
    assert not with_paths, "\n".join(with_paths)


def test_the_first_use_of_a_paper_on_a_page_is_a_link() -> None:
    icy_site = pytest.importorskip("icy_site")
    for page, expected in (("games", ["CBM24", "Icy22"]), ("cite", [])):
        doctree = icy_site.nodes.paragraph("", "As in CBM24 (CBM24, Icy22) and XIcy22.")
        icy_site.link_papers(SimpleNamespace(env=SimpleNamespace(docname=page)), doctree)
        assert doctree.astext() == "As in CBM24 (CBM24, Icy22) and XIcy22."
        found = [*doctree.findall(icy_site.addnodes.pending_xref)]
        assert [one.astext() for one in found] == expected
        assert {one["reftarget"] for one in found} <= {"/cite"}


def test_every_field_of_results_is_described() -> None:
    assert set(generated.example_record()) <= set(described(Record)) == set(Record.__annotations__)
    assert "`parameters_published`" in generated.long_columns()


# -- what is generated -------------------------------------------------------------------------------------------------


def test_parts_of_pages_can_be_generated(subtests: pytest.Subtests) -> None:
    for place, line in {line: (place, line) for page in PAGES for place, line in generated_parts(page)}.values():
        with subtests.test(f"{place}: {line}"):
            name, *arguments = shlex.split(line)
            arguments = ["2x3", "2"] if name in SLOW_PARTS else arguments
            assert len(generated.PARTS[name](*arguments)) > 60


def test_the_page_of_the_papers_has_every_name_with_a_command_that_exists(subtests: pytest.Subtests) -> None:
    output = generated.papers()
    lines = [line.split(" | ") for line in output.splitlines() if line.startswith("| ") and "`" in line]
    assert {one.name for one in published_names()} <= {line[2].strip("`") for line in lines}
    for line in lines:
        with subtests.test(line[2]):
            assert re.fullmatch(r"`icy .+`", line[3])
            assert problem_of_command(line[3].strip("`")) == ""
            page = re.search(r"\]\((.+)\)", line[5])
            assert page is None or not problem_of_link("docs/reproducing.md", page[1])
    counted = next(line for line in lines if line[2] == "`perkins21/table13`")
    cells = pd.read_csv("results/reproduced/perkins21-table13.csv")
    assert counted[4] == f"{cells['verdict'].ne('missing').sum()} of {len(cells)} numbers"


def test_published_totals_are_those_of_the_papers() -> None:
    output = generated.models("sender/RNNAutoReg:LSTM", "sender/FC2L", "receiver/Hier:GRU")
    assert "| `sender/RNNAutoReg:LSTM` | 139,909 | 139,909 |" in output
    assert "| `sender/FC2L` | 19,428 | 19,428 |" in output
    assert "| 206,003 |" in output


def test_names_of_plain_help_keep_their_stars() -> None:
    assert generated._plain("names (`RNN*`) of A*w <x>") == r"names (`RNN*`) of A\*w \<x>"


# -- code and links ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plugged_in(forgetting: None, tmp_path: Path) -> None:
    """Register the plug-ins of the pages, each from its own file."""
    for block in (block for page in PLUG_INS for block in code(page)):
        name = re.match(r"# (\w+\.py)\n", block)
        if name is not None:
            (tmp_path / name[1]).write_text(block)
            registry.load_file(tmp_path / name[1])


@pytest.mark.docs
@pytest.mark.usefixtures("plugged_in")
@pytest.mark.parametrize("name", [
    "sender/SquaredLinear", "receiver/LastTokens", "HierZero:plain", "RNN1L:plain", "MyNet[activation=tanh,layers=2]",
])  # fmt: skip
def test_models_of_the_plug_in_page_keep_the_contract(name: str) -> None:
    assert all(result.passed for result in testing.check(name))


@pytest.mark.docs
@pytest.mark.usefixtures("plugged_in")
@pytest.mark.parametrize(
    ("name", "engines"),
    [
        ("sender/StockGRU", "native and vmap+layers"),
        ("receiver/StockLSTM", "native and vmap+layers"),
        ("sender/StockCell", "native and vmap+layers"),
        ("sender/Normalized", "vmap+layers"),
        ("sender/GPT2Block", "vmap+layers"),
    ],
)
def test_layers_of_pytorch_on_the_plug_in_page_train_as_it_says(name: str, engines: str) -> None:
    if name == "sender/GPT2Block":
        pytest.importorskip("transformers")
    if not calls.available():
        engines = engines.removeprefix("native and ")
    results = {result.name: result.message for result in testing.check(name)}
    assert results["stacked_equals_separate"] == f"trains as: {engines}"


@pytest.mark.usefixtures("plugged_in")
def test_grammars_of_the_plug_in_page_keep_the_contract() -> None:
    testing.check("reverse", "grammar")
    parity = icy.make_language("parity", "3x2", vocab_size=8, seed=1)
    assert parity.distinct_messages == 2
    assert (
        icy.make_language("reverse+reverse", "3x4", seed=1).digest()
        == icy.make_language("concat", "3x4", seed=1).digest()
    )


@pytest.mark.usefixtures("plugged_in")
def test_the_metric_of_the_plug_in_page_measures() -> None:
    assert "distinctness" in icy.list_metrics()
    scores = icy.metrics.evaluate(icy.make_language("concat", "3x4"), metrics=["distinctness"])
    assert scores["distinctness"].tolist() == [1.0]


@pytest.mark.usefixtures("plugged_in")
def test_cells_and_metrics_of_the_plug_in_page_keep_the_contract() -> None:
    testing.check("plain", "cell")
    results = {result.name: result for result in testing.check("distinctness", "metric")}
    assert results["choices_are_conventions"].message == "tried eos=0"


@pytest.mark.usefixtures("forgetting")
def test_the_listener_of_the_games_page_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "listener.py").write_text(block_of("docs/s2b.md", "# listener.py"))
    registry.load_file(tmp_path / "listener.py")
    testing.check("first-dimension", "listener")


@pytest.mark.usefixtures("forgetting")
def test_the_text_model_of_its_page_keeps_the_contract_and_plays(tmp_path: Path) -> None:
    (tmp_path / "my_text_model.py").write_text(block_of("docs/s2b-text.md", "# my_text_model.py"))
    registry.load_file(tmp_path / "my_text_model.py")
    testing.check("first-number", "text-model")
    rows = icy.s2b.evaluate_text("first-number", episodes=8, seeds=1).table()
    assert rows["invalid"].tolist() == [0.0]
    assert 0.3 < rows["yes"][0] < 0.7


@pytest.mark.usefixtures("forgetting")
def test_the_core_of_its_page_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "my_core.py").write_text(block_of("docs/s2b-cores.md", "# my_core.py"))
    registry.load_file(tmp_path / "my_core.py")
    testing.check("fading", "core")


@pytest.mark.docs
def test_the_code_of_the_pages_of_agents_runs() -> None:
    names: dict[str, Any] = {}
    for page in ("agents", "cores", "published-agents"):
        for block in code(f"docs/s2b-{page}.md"):
            if not block.startswith("# my_core.py"):
                exec(compile(block.replace("updates=200", "updates=20"), page, "exec"), names)
    assert names["latents"].shape == (40, 32, 128 * 32)
    assert names["scores"].shape == (64, 3)


@pytest.mark.usefixtures("forgetting")
def test_the_world_of_its_page_keeps_the_contract_and_has_turns(tmp_path: Path) -> None:
    (tmp_path / "my_world.py").write_text(block_of("docs/games-worlds.md", "# my_world.py"))
    registry.load_file(tmp_path / "my_world.py")
    testing.check("stripes", "world")
    world = icy.games.make_world("stripes", side=8, bank=2)
    turns = icy.games.Turns(world, icy.games.TurnSettings(2, 3, 4), [1])
    drawn = turns.batch("training", 0, 2, 5)
    assert world.observe(drawn.objects, drawn.keys).shape == (2, 1, 5, 7, 3, 8, 8)


@pytest.mark.usefixtures("forgetting")
def test_the_perception_of_its_page_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "my_perception.py").write_text(block_of("docs/representations.md", "# my_perception.py"))
    registry.load_file(tmp_path / "my_perception.py")
    results = {r.name: r.message for r in testing.check("linear", "perception")}
    assert results["stacked_equals_separate"] == "trains as: vmap"


def test_the_code_of_the_page_of_representations_runs() -> None:
    (block,) = [b for b in code("docs/representations.md") if not b.startswith("# my_perception.py")]
    exec(compile(block, "channels.md", "exec"), {})


def test_every_representation_is_described() -> None:
    assert all(f"`{name}`" in generated.representations() for name in REPRESENTATIONS)
    assert {"gs: Gumbel-softmax", "qt: binary words", "cb: codes"} <= set(sections("docs/representations.md"))


def test_the_code_of_the_page_of_worlds_runs() -> None:
    names: dict[str, Any] = {}
    (block,) = [b for b in code("docs/games-worlds.md") if not b.startswith("# my_world.py")]
    exec(compile(block, "games-worlds.md", "exec"), names)
    assert names["images"].shape == (5, 3, 10, 16, 3, 32, 32)
    assert names["obeys"][..., :8].all()
    assert not names["obeys"][..., 8:].any()


@pytest.mark.usefixtures("plugged_in")
def test_the_checks_of_the_plug_in_page_run() -> None:
    names: dict[str, object] = {}
    exec(block_of("docs/plug-ins.md", "from icy.testing import check"), names)
    assert callable(names["test_contract"])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # old names
def test_names_of_icy_exist() -> None:
    """Also in comments and in sentences; `icy.plugins` is a group of entry points."""
    pattern = re.compile(r"(?<![\w./@-])icy(?:\.(?!md\b)[A-Za-z_]\w*)+|from icy[\w.]* import [\w, ]+")
    names = {(page, name) for page in PAGES for found in pattern.findall(text(page)) for name in dotted_names(found)}
    wrong = [f"{page}: {name}" for page, name in sorted(names) if name != "icy.plugins" and not name_exists(name)]
    assert not wrong, "\n".join(wrong)
    assert len(names) > 200


def test_files_of_icy_exist() -> None:
    """Files of the code that sentences name, from the root or from the folder `icy`."""
    pattern = re.compile(
        r"`((?:icy|models|grammars|analysis|training|config|experiments|core|records|cli|games|s2b|study|tests)/[\w/]+\.\w+)`"
    )
    named = {(page, name) for page in PAGES if page != "CHANGELOG.md" for name in pattern.findall(text(page))}
    wrong = [
        f"{page}: {name}" for page, name in sorted(named) if not any((ROOT / up / name).exists() for up in ("", "icy"))
    ]
    assert not wrong, "\n".join(wrong)
    assert len(named) > 20


def test_python_parses_and_its_calls_fit() -> None:
    found = [(place, problem_of_python(block)) for page in PAGES for place, block in fenced(page, "python")]
    wrong = [f"{place}: {problem}" for place, problem in found if problem]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 40


def test_commands_exist_and_have_the_options() -> None:
    lines = [found for page in PAGES for found in commands(page) if found[1].split()[1] not in COMMANDS_OF_PLUG_INS]
    wrong = [f"{place}: {problem}: {line}" for place, line in lines if (problem := problem_of_command(line))]
    assert not wrong, "\n".join(wrong)
    assert len(lines) > 250


def test_links_resolve() -> None:
    found = [(place, target, problem_of_link(page, target)) for page in PAGES for place, target in links(page)]
    wrong = [f"{place}: {problem}: {target}" for place, target, problem in found if problem]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 200


def test_includes_find_their_markers() -> None:
    wrong = []
    for page in PAGES:
        for name, options in re.findall(r"^```\{include\} (\S+)\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL):
            included = (ROOT / page).parent.joinpath(name).read_text()
            markers = re.findall(r'^:(?:start-after|end-before): "(.+)"$', options, re.MULTILINE)
            wrong += [f"{page}: {name} has {m!r} {n} times" for m in markers if (n := included.count(m)) != 1]
    assert not wrong, "\n".join(wrong)


def test_every_page_is_in_the_contents() -> None:
    listed = set()
    for page in set(PAGES) - {"docs/benchmarks/index.md"}:  # lists pages that are written when the site is built
        for block in code(page, "{toctree}"):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            files = [((ROOT / page).parent / f"{name}.md").resolve() for name in names]
            listed |= {file.relative_to(ROOT.resolve()).as_posix() for file in files}
    assert listed | {"docs/index.md", *GUIDES} == set(PAGES)


def test_citation_and_package_agree() -> None:
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {icy.__version__}\n" in cited
    entry, year = (DOCS / "cite.md").read_text(), re.search(r"Copyright \(c\) (\d+)", (ROOT / "LICENSE").read_text())[1]
    for part in (re.search(r'^title: "(.+)"$', cited, re.MULTILINE)[1], icy.__version__, year):
        assert f" = {{{part}}}" in entry


# -- the site ----------------------------------------------------------------------------------------------------------


@pytest.mark.docs
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason='needs pip install ".[docs]"')
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DOCS / "build.py", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not [page for page in (tmp_path / "html").rglob("*.html") if str(ROOT) in page.read_text()]
    grammars = (tmp_path / "html" / "grammars.html").read_text()
    assert all(f'src="_images/grammar-{name}.png"' in grammars for name in icy.list_grammars())
    assert "<math" in (tmp_path / "html" / "model-equations.html").read_text()
    assert 'id="icy.probe"' in (tmp_path / "html" / "api" / "icy-runs.html").read_text()


@pytest.mark.docs
def test_the_code_of_comparing_results_runs() -> None:
    names: dict[str, Any] = {}
    for block in code("docs/comparing-results.md"):
        exec(block, names)
    assert names["same"].verdict in {"equivalent", "different", "both", "unclear"}
