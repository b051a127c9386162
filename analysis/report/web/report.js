// A report: choosing a row in a table or a picture shows its learning curves.
const chosen = data.sections.map(() => 0);
const names = (section) => Object.fromEntries(section.run_names.map((name, at) => [name, at]));

// The mean curves of a row; curves of seeds if they are asked for, and of grammars without a mean.
function curvesOf(section, row, y, seeds) {
  const at = names(section), values = [], means = section.means.filter((one) => one[0] === row && one[2] === y);
  for (const [, grammar, , xs, mean, low, high] of means)
    xs.forEach((x, i) => values.push({ x, y: mean[i], low: low[i], high: high[i], grammar, seed: "mean" }));
  for (const run of section.runs) {
    const curve = section.curves[run[at.curve]];
    if (run[at.row] !== row || !curve || (!seeds && means.some(([, grammar]) => grammar === run[at.grammar]))) continue;
    curve[0].forEach((x, i) => { if (curve[y][i] !== null) values.push({ x, y: curve[y][i], grammar: run[at.grammar], seed: run[at.seed] }); });
  }
  return values;
}

function drawCurves(place, row = chosen[place]) {
  const section = data.sections[place], select = document.querySelector(`[data-curve="${place}"]`);
  if (!select) return;
  const spec = structuredClone(data.charts.curves), { encoding } = spec.layer[1], // the lines, above the band
    { grammars, colors, dashes } = section.looks;
  encoding.x.title = encoding.tooltip.find((tip) => tip.field === "x").title = section.counted;
  encoding.y.title = section.points[select.value];
  encoding.color.scale = { domain: grammars, range: colors };
  encoding.strokeDash.scale = { domain: grammars, range: dashes };
  const levels = encoding.y.title === "accuracy" ? section.levels[row] : []; // lines at the target and at chance
  const seeds = document.querySelector(`[data-seeds="${place}"]`)?.checked, values = curvesOf(section, row, Number(select.value), seeds);
  for (const layer of spec.layer.slice(2)) layer.data = { values: levels };
  if (!levels.length) spec.layer.length = 2;
  if (!values.some(({ seed }) => seed === "mean")) spec.layer.splice(0, 1); // no band
  document.querySelector(`[data-of="${place}"]`).textContent = `of ${row === chosen[place] ? "" : "the row under the pointer: "}${section.rows[row]}`;
  draw(`curves-${place}`, spec, values, null, "These runs have no curves.");
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

function shownRows(place) {
  const rows = document.querySelectorAll(`#table-${place} tbody tr:not([hidden]) [data-row]`);
  return new Set([...rows].map((button) => Number(button.dataset.row)));
}

const LEGEND = 150; // pixels beside a heat map
const MOST_NUMBERS = 2000; // cells of a heat map with numbers
const RATIOS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]; // named in its legend
// A chart with a panel per side or setting, at most `columns` next to each other.
function inPanels({ $schema, description, data: shown, autosize, ...view }, values, columns) {
  const panels = [...new Set(values.map(({ panel }) => panel))];
  const parts = panels.map((title) => ({ ...structuredClone(view), ...(title ? { title } : {}), transform: [{ filter: { field: "panel", equal: title } }] }));
  return { $schema, description, data: shown, concat: parts, columns, resolve: { scale: { color: "shared" } } };
}

function drawPictures(place) {
  const section = data.sections[place], { columns, domain: [low, high], log } = section, rows = shownRows(place);
  const of = (values) => values.filter((value) => rows.has(value.row)), room = (name) => document.getElementById(`${name}-${place}`)?.clientWidth ?? 0;
  const clicked = (datum) => choose(place, datum.row), pointed = (datum) => preview(place, datum.row);
  const ratios = RATIOS.filter((one) => low <= one && one <= high), cells = of(section.cells), points = of(section.tradeoff);
  const heat = structuredClone(data.charts[section.chart]), { color } = heat.layer[0].encoding, { x, y } = heat.encoding;
  x.sort = columns;
  color.scale.domain = [low, high];
  if (log) color.legend.values = ratios;
  y.axis = { labelLimit: Math.max(0.35 * room("heat"), room("heat") - columns.length * heat.width.step - LEGEND) };
  if (cells.length > MOST_NUMBERS) heat.layer.length = 1;
  draw(`heat-${place}`, inPanels(heat, cells, 1), cells, clicked, undefined, pointed);
  const tradeoff = structuredClone(data.charts[`tradeoff${log ? "_log" : ""}`]), count = Math.min(room("tradeoff") < 460 ? 1 : 3, new Set(points.map(({ panel }) => panel)).size);
  tradeoff.width = Math.max(140, room("tradeoff") / count - 70);
  for (const [axis, ends] of [["x", ["left", "right"]], ["y", ["low", "high"]]]) {
    const values = points.flatMap((one) => ends.map((end) => one[end])), least = Math.min(...values), most = Math.max(...values);
    const pad = 0.08 * (most - least || 1), { scale } = tradeoff.encoding[axis];
    scale.domain = log ? [Math.max(least, 0.01) / 1.15, most * 1.15] : [least - pad, most + pad];
    if (log) tradeoff.encoding[axis].axis = { values: RATIOS };
  }
  draw(`tradeoff-${place}`, inPanels(tradeoff, points, count), points, clicked, undefined, pointed);
  for (const name of ["heat", "tradeoff"]) drawn.set(`${name}-${place}`, () => drawPictures(place)); // room depends on the width
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
  for (const name of ["curve", "seeds"]) document.querySelector(`[data-${name}="${place}"]`)?.addEventListener("change", () => drawCurves(place));
  const runs = document.querySelector(`[data-runs="${place}"]`);
  runs.addEventListener("toggle", () => showRuns(runs, section), { once: true });
});
document.body.dataset.ready = "yes";
