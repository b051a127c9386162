// A report: choosing a row in a table or a picture shows its learning curves.
const chosen = data.sections.map(() => 0);
const names = (section) => Object.fromEntries(section.run_names.map((name, at) => [name, at]));

function curvesOf(section, row, y) {
  const at = names(section), values = [];
  for (const run of section.runs) {
    const curve = section.curves[run[at.curve]];
    if (run[at.row] !== row || !curve) continue;
    curve[0].forEach((x, i) => { if (curve[y][i] !== null) values.push({ x, y: curve[y][i], grammar: run[at.grammar], seed: run[at.seed] }); });
  }
  return values;
}

function drawCurves(place, row = chosen[place]) {
  const section = data.sections[place], select = document.querySelector(`[data-curve="${place}"]`);
  if (!select) return;
  const spec = structuredClone(data.charts.curves);
  spec.encoding.x.title = spec.encoding.tooltip.find((tip) => tip.field === "x").title = section.counted;
  spec.encoding.y.title = section.points[select.value];
  document.querySelector(`[data-of="${place}"]`).textContent = `of ${row === chosen[place] ? "" : "the row under the pointer: "}${section.rows[row]}`;
  draw(`curves-${place}`, spec, curvesOf(section, row, Number(select.value)), null, "These runs have no curves.");
}

function choose(place, row) {
  if (row < 0) return;
  chosen[place] = row;
  const select = document.querySelector(`[data-chosen="${place}"]`);
  if (select) select.value = row;
  for (const button of document.querySelectorAll(`#table-${place} [data-row]`)) {
    const on = Number(button.dataset.row) === row;
    button.setAttribute("aria-pressed", on);
    button.closest("tr").classList.toggle("chosen", on);
  }
  drawCurves(place);
}

// Draw the curves of the row under the pointer when it rests there, and of the chosen row when it leaves.
const resting = data.sections.map(() => 0);
function preview(place, row) {
  clearTimeout(resting[place]);
  if (row === undefined || row >= 0) resting[place] = setTimeout(() => drawCurves(place, row), 200);
}

function shownLines(place) {
  const rows = document.querySelectorAll(`#table-${place} tbody tr:not([hidden]) [data-row]`);
  return new Set([...rows].map((button) => Number(button.dataset.line)));
}

const LEGEND = 150; // pixels beside a heat map
const RATIOS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]; // named in its legend
function drawPictures(place) {
  const section = data.sections[place], lines = shownLines(place), kind = section.log ? "_log" : "";
  const of = (values) => values.filter((value) => lines.has(value.line));
  const clicked = (datum) => choose(place, datum.row), pointed = (datum) => preview(place, datum.row);
  const heat = structuredClone(data.charts[section.chart]), { x, y, color } = heat.encoding, [low, high] = section.domain;
  const ratios = RATIOS.filter((one) => low <= one && one <= high);
  if (color) {
    const room = document.getElementById(`heat-${place}`)?.clientWidth ?? 0;
    x.sort = section.columns;
    color.scale.domain = section.domain;
    if (section.log) color.legend.values = ratios;
    y.axis = { labelLimit: Math.max(0.35 * room, room - section.columns.length * heat.width.step - LEGEND) };
  } else { // bars of a single row, with room for the number at the end of the longest
    y.sort = section.columns;
    heat.height *= section.cells.length;
    x.scale.domain = [low, section.log ? high * (high / low) ** 0.2 : high + 0.2 * (high - low)];
    x.axis = section.log ? { values: ratios } : {};
  }
  draw(`heat-${place}`, heat, of(section.cells), clicked, undefined, pointed);
  drawn.set(`heat-${place}`, () => drawPictures(place)); // as the room for names depends on the width
  const tradeoff = structuredClone(data.charts[`tradeoff${kind}`]);
  tradeoff.encoding.y.title += section.easy;
  if (new Set(section.tradeoff.map((one) => one.side)).size < 2) tradeoff.encoding.color = { value: tradeoff.encoding.color.scale.range[0] };
  draw(`tradeoff-${place}`, tradeoff, of(section.tradeoff), clicked, undefined, pointed);
}

function showRuns(details, section) {
  const at = names(section), cut = section.runs.some((run) => run[at.censored]);
  const heads = ["row", "grammar", "seed", "value", ...(cut ? ["censored"] : []), section.counted === "updates" ? "updates" : "steps", "seconds", "ended by"];
  const rows = section.runs.map((run) => [
    section.rows[run[at.row]], run[at.grammar], run[at.seed], run[at.value], ...(cut ? [run[at.censored] ? "yes" : ""] : []), run[at.steps], run[at.seconds], run[at.failed] ? run[at.error] : run[at.reason],
  ]);
  details.append(scrolling(sortableTable(heads, rows), `All runs of ${section.name}`, " tall"));
}

data.sections.forEach((section, place) => {
  drawPictures(place);
  const at = names(section), first = section.runs.find((run) => run[at.curve] >= 0);
  choose(place, first ? first[at.row] : 0);
  const table = document.getElementById(`table-${place}`);
  for (const name of ["heat", "tradeoff"]) document.getElementById(`${name}-${place}`)?.addEventListener("mouseleave", () => preview(place));
  table.addEventListener("click", (event) => {
    const button = event.target.closest("[data-row]");
    if (!button) return;
    choose(place, Number(button.dataset.row));
    document.getElementById(`curves-${place}`)?.closest("figure").scrollIntoView({ block: "nearest" });
  });
  document.querySelector(`[data-filter="${place}"]`).addEventListener("input", (event) => {
    const shown = filtered(table, event.target.value);
    document.querySelector(`[data-count="${place}"]`).textContent = event.target.value ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
    drawPictures(place);
  });
  document.querySelector(`[data-chosen="${place}"]`)?.addEventListener("change", (event) => choose(place, Number(event.target.value)));
  document.querySelector(`[data-curve="${place}"]`)?.addEventListener("change", () => drawCurves(place));
  const runs = document.querySelector(`[data-runs="${place}"]`);
  runs.addEventListener("toggle", () => showRuns(runs, section), { once: true });
});
document.body.dataset.ready = "yes";
