"""Commands that train models: `icy probe`, `sweep`, `e2e` and `iterate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from icy.cli.options import PlotFile, command, request_options
from icy.cli.output import checked_plot, note, save_figure
from icy.cli.session import Output, run_command
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.text import printable
from icy.experiments.plan import Plan, make_plan
from icy.experiments.requests import SweepRequest
from icy.experiments.results import EndToEndResult, ProbeResult
from icy.records.load import ATLAS
from icy.training.chain_settings import ChainRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

if TYPE_CHECKING:
    from icy.analysis.atlas.atlas import Atlas


# -- probe -------------------------------------------------------------------------------------------------------------


@command("probe")
def probe_command(
    *,
    chosen: Annotated[dict[str, Any], request_options(ProbeRequest)],
    output: Output,
    compare: Annotated[str | None, {"metavar": "WITH"}] = None,
    plot: PlotFile = None,
) -> int:
    """Measure which grammars a model learns easily.

    Trains the model on every grammar with several seeds, prints the bias table relative to concat, and saves all
    results in a folder.

    Args:
        compare: atlas (or FILE.parquet, an atlas of your own) ranks the rows among all models measured by icy;
            published, a published table such as perkins21/table13, or a results folder shows reference values next to
            the cells.
        plot: with --compare atlas: draw the rows among all models.

    Examples:
      icy probe --model HierZero:GRU --grammar shufdet
      icy probe -m 'HierZero:*' -m receiver/FC2L --seeds 5 -o bias
      icy probe -m sender/FC1L --grammar rot --grammar rot+perm --quick
      icy probe -m RNNZero:LSTM --protocol budget --preset published --format latex
      icy probe -m sender/FC2L -g all --protocol generalise --split combinations
      icy probe -m HierZero:GRU --hidden 64,128,256
      icy probe -m HierZero:GRU -g emerged.csv -g perm
      icy probe -m HierZero:GRU -g all --track tensorboard
      icy probe -m all --dry-run
      icy probe -m MyModel --plugin mine.py --compare atlas --plot where.png
      icy probe -m sender/FC2L --protocol budget --preset published --compare perkins21/table13
      icy probe -m MyModel --plugin mine.py --option layers=3 --set learning_rate=0.002

    Concat is always trained, as the baseline. Finished runs are saved in the results folder: after Ctrl-C, a crash, or
    with more grammars or seeds, the same command trains only missing runs.
    """
    request = ProbeRequest.asked(**chosen)
    plan = make_plan(request)
    comparison = _Comparison.asked(compare, plot, plan, output.format_)
    return run_command(plan, output, lambda result: comparison.show(result, output), request.track)


@dataclass(frozen=True)
class _Comparison:
    """Reference results for the results of a probe.

    Attributes:
        atlas: the atlas in which results are placed, or None.
        look: reference values for the table: arguments of `icy.analysis.bias_table`.
        plot: file for a plot of the placement, or None.
    """

    atlas: Atlas | None
    look: dict[str, Any]
    plot: Path | None

    @classmethod
    def asked(cls, compare: str | None, plot: Path | None, plan: Plan, format_: str) -> _Comparison:
        """Return the comparison of a command line. Check it before the training, which may take hours.

        Raises:
            IcyError: an unknown table, file or folder, or an atlas without the settings of the plan.
        """
        of_atlas = compare is not None and (compare == ATLAS or compare.endswith(".parquet"))
        if plot is not None and not of_atlas:
            raise InvalidSettingError("--plot draws the rows in the atlas: use it with --compare atlas.")
        path = checked_plot(plot)
        if of_atlas and format_ in ("json", "csv"):
            raise InvalidSettingError(
                f"--compare atlas cannot print {format_}; in Python, icy.atlas().place(result) has "
                "ranks and neighbors as tables."
            )
        if compare is None or of_atlas:
            return cls(_atlas_for(compare, plan) if compare else None, {}, path)
        from icy.analysis.tables.references import compared_with

        other, name = compared_with(compare)
        return cls(None, {} if other is None else {"compare": other, "compared": name}, path)

    def show(self, result: ProbeResult, output: Output) -> None:
        """Print the results with their comparison."""
        output.show(result, **self.look)
        if self.atlas is None or all(record["failed"] for record in result.records):
            return
        placements = self.atlas.places(result)
        for placement in placements:
            click.echo(printable(f"\n{placement!r}"))
        if self.plot is not None:
            from icy.analysis.atlas.placement import plot_placements

            save_figure(plot_placements(placements), self.plot, output.quiet)


def _atlas_for(compare: str, plan: Plan) -> Atlas:
    """Return the atlas, after a check that the atlas has results with the plan's settings.

    Raises:
        StoreError: the atlas does not exist.
        InvalidSettingError: the atlas has no results with these settings.
    """
    from icy.analysis.atlas.atlas import FILE, SETTING, Atlas
    from icy.records.long_table import to_long

    atlas = Atlas.load(FILE if compare == ATLAS else compare)
    # Nothing is trained yet, so use failed records. They have the settings of each row.
    rows = to_long([row.job.failure(row.job.replicates[0], IcyError()) for row in plan.rows])
    settings = rows.drop_duplicates(SETTING)
    for place in range(len(settings)):
        atlas.alike(settings.iloc[[place]])
    return atlas


# -- sweep -------------------------------------------------------------------------------------------------------------


@command("sweep")
def sweep_command(
    file: Annotated[str | None, {"type": click.Path()}] = None,
    *,
    chosen: Annotated[dict[str, Any], request_options(SweepRequest, without=("kind", "parts"))],
    output: Output,
) -> int:
    """Probe many models under many settings: one row per combination.

    Takes the options of `icy probe`, each with one or several values. The command line overrides FILE.

    Examples:
      icy sweep -m 'sender/*' --representation soft,gumb --seeds 5 -o bias --dry-run
      icy sweep -m 'HierZero:*' -m 'RNN*:GRU' --hidden 64,128 --protocol acquire,budget -o bias
      icy sweep zoo.toml
      icy sweep zoo.toml --shard 2/8      # on the second of eight machines that share the folder

    A file in TOML (or YAML) holds the same options by name; each [[sweep]] is a part with its own values:
      seeds = 5
      out = "bias"
      [[sweep]]
      model = "sender/*"
      representation = ["soft", "gumb"]
      [[sweep]]
      model = "receiver/Hier:*"
      hidden = [64, 128]

    Finished runs are never repeated: after Ctrl-C, a crash, or with more models, the same command trains only missing
    runs. A row that fails is saved as failed, and the others continue; --rerun failed tries it again.
    """
    from icy.experiments.sweep import make_sweep, over, read_sweep, sweep_request  # imports torch

    request = sweep_request(**(over(read_sweep(file), chosen) if file else chosen))
    return run_command(make_sweep(request), output, output.show, request.track, request.retries)


# -- e2e ---------------------------------------------------------------------------------------------------------------


@command("e2e")
def e2e_command(
    *, chosen: Annotated[dict[str, Any], request_options(EndToEndRequest)], output: Output, plot: PlotFile = None
) -> int:
    """Train a sender and a receiver together, from scratch or after both have learned a grammar.

    Prints the accuracy of the pair, the topographic similarity of its messages and, after pre-training, how far both
    sides have drifted from their language.

    Args:
        plot: draw the curves, in the form of Icy22 figure 7.

    Examples:
      icy e2e --sender HierZero:GRU --receiver Hier:GRU
      icy e2e --sender FC2L --receiver RNN1L:GRU --representation discr --quick
      icy e2e --sender RNNZero:GRU --receiver RNN:GRU --pretrain perm --pretrain rot --plot drift.png
      icy e2e --sender FC1L --sender FC2L --receiver FC --updates 5000 --format csv
      icy e2e --sender FC1L --receiver FC1L --pretrain perm --quick --pretrained kept
      icy e2e --sender FC2L --receiver RNN1L:GRU --senders 3 --receivers 3 --quick
      icy e2e --sender FC2L --receiver RNN1L:GRU --max-length 5 --length-cost lazy --representation gumb --quick

    From scratch (--pretrain none) the table shows accuracy and topsim at the end. After pre-training it also shows how
    well each side still knows its language. Finished runs are saved in the results folder: after Ctrl-C, a crash, or
    with more grammars or seeds, the same command trains only missing runs. The folder also holds the emerged languages;
    in Python, icy.EndToEndResult.load(FOLDER).language(...) reads a language.
    """
    figure = checked_plot(plot)
    request = EndToEndRequest.asked(**chosen)

    def show(result: ProbeResult) -> None:
        output.show(result)
        if figure is None:
            return
        if isinstance(result, EndToEndResult) and len(result.curves()):
            save_figure(result.plot(), figure, output.quiet)
        else:
            note("There is nothing to draw: no pair has finished.")

    return run_command(make_plan(request), output, show, request.track)


# -- iterate -----------------------------------------------------------------------------------------------------------


@command("iterate")
def iterate_command(
    *, chosen: Annotated[dict[str, Any], request_options(ChainRequest)], output: Output, plot: PlotFile = None
) -> int:
    """Pass languages from learner to learner, and measure how much of the first language survives.

    Each learner is a new sender, receiver or pair. It trains on the messages of the learner before it for a part of the
    meanings, the bottleneck, and then speaks for all meanings.

    Args:
        plot: draw survival, distinct messages and topsim over generations.

    Examples:
      icy iterate --model FC2L --grammar perm --quick
      icy iterate --model 'RNNZero:*' --grammar concat,rot,hol --bottleneck 0.25,0.75 --chains 10
      icy iterate --model FC2L --grammar mine.csv --transmission sampled --plot chains.png
      icy iterate --model FC2L --receiver RNN1L:GRU --grammar concat,hol --interaction 0,200

    The table shows survival: the share of the tokens that are the same in the first and the last language. Learners
    stop at the target, an accuracy on the meanings that they see, so that equally trained learners are compared.
    Finished chains are kept in the results folder: after Ctrl-C, a crash, or with more languages or chains, the same
    command trains only missing chains. The folder also keeps the language of every generation, languages/KEY-NN.npz,
    which `icy metrics` reads.
    """
    figure = checked_plot(plot)
    request = ChainRequest.asked(**chosen)

    def show(result: ProbeResult) -> None:
        output.show(result)
        if figure is not None:
            from icy.analysis.plots.chain_plots import chain_curves

            save_figure(chain_curves(result), figure, output.quiet)

    return run_command(make_plan(request), output, show, request.track)
