"""The site says everything there is, and what it says holds. Building it needs Sphinx, and is marked slow."""

import ast
import importlib
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import icy
from icy.cli import COMMANDS, main
from icy.cli.options import described
from icy.config.settings import PUBLISHED
from icy.core.registry import SIDES, registry
from icy.core.representations import REPRESENTATIONS
from icy.records.record import Record
from icy.testing import (
    check_cell,
    check_core,
    check_grammar,
    check_listener,
    check_metric,
    check_model,
    check_perception,
    check_text_model,
    check_world,
)

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "_ext"))

import generated  # noqa: E402  (found only now)

PAGES = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md") if path.name[0] != "_"}
PAGES = {name: text for name, text in PAGES.items() if not name.startswith(("_build", "_generated"))}
SLOW_PARTS = ("grammar-measures",)


def asked(page: str, part: str = "") -> list[list[str]]:
    """What a page asks to be generated: the part and its arguments."""
    found = [shlex.split(line) for line in re.findall(r"^ *```\{generated\} (.+)$", PAGES[page], re.MULTILINE)]
    return [one for one in found if part in ("", one[0])]


def code_blocks(page: str, language: str) -> list[str]:
    """The code of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


def sections(page: str) -> list[str]:
    """The headings of a page, without marks of code."""
    return [
        h.replace("`", "") for h in re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", PAGES[page], flags=re.S), re.M)
    ]


# -- everything has its place ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", SIDES)
def test_every_model_has_a_section(side: str) -> None:
    patterns = [pattern for _, *found in asked(f"{side}s.md", "models") for pattern in found]
    shown = [entry.qualified for entry in registry.match(patterns, *SIDES)]
    assert sorted(shown) == sorted(icy.list_models(f"{side}/*"))
    families = {name.partition("/")[2].partition(":")[0] for name in shown}
    headings = " ".join(sections(f"{side}s.md"))
    assert {name for name in families if name.removesuffix("2L") not in headings} == set()


def test_every_cell_has_a_section() -> None:
    cells = {entry.name for entry in registry.entries("cell")}
    assert {name for _, name in asked("cells.md", "cell-card")} == cells
    assert cells <= set(sections("cells.md"))


def test_every_grammar_has_a_section_and_a_picture() -> None:
    grammars = set(icy.list_grammars())
    assert {name for _, name in asked("grammars.md", "grammar")} == grammars
    assert grammars <= set(sections("grammars.md"))
    assert set(re.findall(r"_generated/grammar-(\w+)\.png", PAGES["grammars.md"])) == grammars


def test_every_metric_has_a_section() -> None:
    assert {name for _, name in asked("metrics.md", "metric")} == set(icy.list_metrics())
    assert set(icy.list_metrics()) <= set(sections("metrics.md"))


def test_every_departure_is_told() -> None:
    assert asked("published-versus-corrected.md", "departures") == [["departures"]]
    told = generated.departures()
    for name, departure in PUBLISHED.items():
        assert f"| {name} |" in told
        assert departure.reason in told
        assert all(setting in told for setting in departure.settings)


def test_settings_of_the_preset_are_those_it_has() -> None:
    lines = {line.split("`")[1]: line for line in generated.training_settings().splitlines()[2:]}
    assert "| `None` | `50` |" in lines["check_every"]
    assert "| `0.1` |  |" in lines["check_growth"]
    assert "| `0.01` | `0.1` (one side alone) |" in lines["entropy_weight"]
    assert "| `False` | `True` (pairs) |" in lines["training_readings"]


def test_every_command_and_option_is_in_the_reference() -> None:
    assert asked("cli.md") == [["commands"]]
    told = generated.commands()
    context = click.Context(main, info_name="icy")
    for name in COMMANDS:
        command = main.get_command(context, name)
        names = command.list_commands(context) if isinstance(command, click.Group) else []
        inner = [command.get_command(context, one) for one in names] if isinstance(command, click.Group) else []
        for one, title in ((command, f"icy {name}"), *((i, f"icy {name} {i.name}") for i in inner)):
            section = re.search(rf"^#+ {title}\n(.*?)(?=^#+ icy |\Z)", told, re.MULTILINE | re.DOTALL)
            assert section is not None, title
            flags = {flag for p in one.params if isinstance(p, click.Option) for flag in p.opts if not p.hidden}
            assert {flag for flag in flags if flag not in section[1]} == set()
            assert "Examples:" in section[1]


def test_every_public_name_has_a_page() -> None:
    pages = [path.stem for path in (DOCS / "api").glob("*.md")]
    for name in ("metrics", "s2b", "games", "analysis", "models", "grammars", "testing"):
        assert f".. public:: icy.{name}" in PAGES[f"api/{name}.md"]
        assert name in pages
    assert ".. public:: icy\n" in PAGES["api/icy.md"]


@pytest.mark.parametrize(
    "package", [name for page in PAGES for name in re.findall(r"^\.\. public:: (\S+)", PAGES[page], re.M)]
)
def test_public_signatures_hold_nothing_of_the_builders_machine(package: str) -> None:
    module = importlib.import_module(package)
    named = {name: getattr(module, name) for name in module.__all__}
    inner = {
        f"{n}.{m}": f for n, one in named.items() if inspect.isclass(one) for m, f in inspect.getmembers(one, callable)
    }
    for name, one in {**named, **inner}.items():
        try:
            shown = str(inspect.signature(one)) if callable(one) else ""
        except ValueError:  # of a type without one
            continue
        assert str(ROOT) not in shown, name
        assert "PosixPath" not in shown, name


def test_every_field_of_results_is_described() -> None:
    assert set(generated.example_record()) <= set(described(Record)) == set(Record.__annotations__)
    assert "`parameters_published`" in generated.long_columns()


# -- what is generated -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", sorted({tuple(one) for page in PAGES for one in asked(page)}), ids=" ".join)
def test_what_is_asked_for_can_be_generated(call: tuple[str, ...]) -> None:
    name, *arguments = call
    arguments = ["2x3", "2"] if name in SLOW_PARTS else arguments
    assert len(generated.PARTS[name](*arguments)) > 60


def test_published_totals_are_those_of_the_papers() -> None:
    told = generated.models("sender/RNNAutoReg:LSTM", "sender/FC2L", "receiver/Hier:GRU")
    assert "| `sender/RNNAutoReg:LSTM` | 139,909 | 139,909 |" in told
    assert "| `sender/FC2L` | 19,428 | 19,428 |" in told
    assert "| 206,003 |" in told


def test_names_of_plain_help_keep_their_stars() -> None:
    assert generated._plain("names (`RNN*`) of A*w <x>") == r"names (`RNN*`) of A\*w \<x>"


# -- code and links ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plugged_in(forgetting: None, tmp_path: Path) -> None:
    """The plug-ins of the page, each from a file of its own."""
    for block in code_blocks("plug-ins.md", "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        if name is not None:
            (tmp_path / name[1]).write_text(block)
            registry.load_file(tmp_path / name[1])


@pytest.mark.usefixtures("plugged_in")
@pytest.mark.parametrize("name", ["sender/SquaredLinear", "receiver/LastTokens", "HierZero:plain", "RNN1L:plain"])
def test_models_of_the_plug_in_page_keep_the_contract(name: str) -> None:
    assert all(result.passed for result in check_model(name))


@pytest.mark.usefixtures("plugged_in")
def test_grammars_of_the_plug_in_page_keep_the_contract() -> None:
    check_grammar("reverse")
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
    check_cell("plain")
    results = {result.name: result for result in check_metric("distinctness")}
    assert results["choices_are_conventions"].message == "tried eos=0"


@pytest.mark.usefixtures("forgetting")
def test_the_listener_of_the_games_page_keeps_the_contract(tmp_path: Path) -> None:
    (block,) = [b for b in code_blocks("s2b.md", "python") if b.startswith("# listener.py")]
    (tmp_path / "listener.py").write_text(block)
    registry.load_file(tmp_path / "listener.py")
    check_listener("first-dimension")


@pytest.mark.usefixtures("forgetting")
def test_the_text_model_of_its_page_keeps_the_contract_and_plays(tmp_path: Path) -> None:
    (block,) = [b for b in code_blocks("s2b-text.md", "python") if b.startswith("# my_text_model.py")]
    (tmp_path / "my_text_model.py").write_text(block)
    registry.load_file(tmp_path / "my_text_model.py")
    check_text_model("first-number")
    rows = icy.s2b.evaluate_text("first-number", episodes=8, seeds=1).table()
    assert rows["invalid"].tolist() == [0.0]
    assert 0.3 < rows["yes"][0] < 0.7


@pytest.mark.usefixtures("forgetting")
def test_the_core_of_its_page_keeps_the_contract(tmp_path: Path) -> None:
    (block,) = [b for b in code_blocks("s2b-agents.md", "python") if b.startswith("# my_core.py")]
    (tmp_path / "my_core.py").write_text(block)
    registry.load_file(tmp_path / "my_core.py")
    check_core("fading")


def test_the_code_of_the_page_of_agents_runs() -> None:
    names: dict[str, Any] = {}
    for block in code_blocks("s2b-agents.md", "python"):
        if not block.startswith("# my_core.py"):
            exec(compile(block, "s2b-agents.md", "exec"), names)
    assert names["latents"].shape == (40, 32, 128 * 32)
    assert names["scores"].shape == (64, 3)


@pytest.mark.usefixtures("forgetting")
def test_the_world_of_its_page_keeps_the_contract_and_has_turns(tmp_path: Path) -> None:
    (block,) = [b for b in code_blocks("games-worlds.md", "python") if b.startswith("# my_world.py")]
    (tmp_path / "my_world.py").write_text(block)
    registry.load_file(tmp_path / "my_world.py")
    results = {r.name: r.message for r in check_world("stripes")}
    assert results["looks_vary"] == "objects have many looks"
    world = icy.games.make_world("stripes", side=8, bank=2)
    turns = icy.games.Turns(world, icy.games.TurnSettings(2, 3, 4), [1])
    drawn = turns.batch("training", 0, 2, 5)
    assert world.observe(drawn.objects, drawn.keys).shape == (2, 1, 5, 7, 3, 8, 8)


@pytest.mark.usefixtures("forgetting")
def test_the_perception_of_its_page_keeps_the_contract(tmp_path: Path) -> None:
    (block,) = [b for b in code_blocks("channels.md", "python") if b.startswith("# my_perception.py")]
    (tmp_path / "my_perception.py").write_text(block)
    registry.load_file(tmp_path / "my_perception.py")
    results = {r.name: r.message for r in check_perception("linear")}
    assert results["stacked_equals_separate"] == "trains as: vmap"


def test_the_code_of_the_page_of_channels_runs() -> None:
    (block,) = [b for b in code_blocks("channels.md", "python") if not b.startswith("# my_perception.py")]
    exec(compile(block, "channels.md", "exec"), {})


def test_every_representation_is_described() -> None:
    assert all(f"`{name}`" in generated.channels() for name in REPRESENTATIONS)
    assert {"gs: Gumbel-softmax", "qt: binary words", "cb: codes"} <= set(sections("channels.md"))


def test_the_code_of_the_page_of_worlds_runs() -> None:
    names: dict[str, Any] = {}
    (block,) = [b for b in code_blocks("games-worlds.md", "python") if not b.startswith("# my_world.py")]
    exec(compile(block, "games-worlds.md", "exec"), names)
    assert names["images"].shape == (5, 3, 10, 16, 3, 32, 32)
    assert names["obeys"][..., :8].all()
    assert not names["obeys"][..., 8:].any()


@pytest.mark.usefixtures("plugged_in")
def test_the_checks_of_the_plug_in_page_run() -> None:
    (block,) = [b for b in code_blocks("plug-ins.md", "python") if not b.startswith("# my_")]
    names: dict[str, object] = {}
    exec(compile(block, "plug-ins.md", "exec"), names)
    assert callable(names["test_contract"])


@pytest.mark.parametrize("page", PAGES)
def test_python_is_python(page: str) -> None:
    for block in code_blocks(page, "python"):
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_shown_exist(page: str) -> None:
    """In blocks of shell commands; every option of each is one of the command."""
    context = click.Context(main, info_name="icy")
    for line in "\n".join(code_blocks(page, "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] != "icy":
            continue
        command = main.get_command(context, words[1])
        assert command is not None, line
        known = {flag for p in command.params if isinstance(p, click.Option) for flag in p.opts}
        assert (
            isinstance(command, click.Group)
            or {w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)} <= known
        ), line


def anchors(page: str) -> set[str]:
    """What a link may point to within a page: its headings, as GitHub and MyST name them, and targets of its own."""
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in sections(page)}
    return named | set(re.findall(r"^\((\w+)\)=$", PAGES[page], re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page: str) -> None:
    text = re.sub(r"^( *)```(?!\{include).*?^\1```", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (DOCS / page).parent / path if path else DOCS / page
        assert file.exists(), target
        name = file.resolve().relative_to(ROOT).as_posix()
        if anchor and name.startswith("docs/"):
            assert anchor in anchors(name.removeprefix("docs/")), target


@pytest.mark.parametrize("page", PAGES)
def test_includes_find_what_they_include(page: str) -> None:
    for name, options in re.findall(r"^```\{include\} (\S+)\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL):
        included = ((DOCS / page).parent / name).read_text()
        for marker in re.findall(r'^:(?:start-after|end-before): "(.+)"$', options, re.MULTILINE):
            assert included.count(marker) == 1


def test_every_page_is_in_the_contents() -> None:
    listed = set()
    for page, text in PAGES.items():
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {
                ((DOCS / page).parent / f"{n}.md").resolve().relative_to(DOCS.resolve()).as_posix() for n in names
            }
    assert listed | {"index.md"} == set(PAGES)


def test_citation_and_package_agree() -> None:
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {icy.__version__}\n" in cited
    assert re.search(r'^title: "(.+)"$', cited, re.MULTILINE)[1] in generated.citation()


# -- the site ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason='needs pip install ".[docs]"')
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DOCS / "build.py", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert not [page for page in (tmp_path / "html").rglob("*.html") if str(ROOT) in page.read_text()]
    grammars = (tmp_path / "html" / "grammars.html").read_text()
    assert all(f'src="_images/grammar-{name}.png"' in grammars for name in icy.list_grammars())
    assert "<math" in (tmp_path / "html" / "senders.html").read_text()
    assert 'id="icy.probe"' in (tmp_path / "html" / "api" / "icy.html").read_text()
