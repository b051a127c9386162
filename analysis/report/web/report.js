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
  const spec = structuredClone(section.charts.curves), { encoding } = spec.layer[1]; // the lines, above the band
  encoding.y.title = section.points[select.value];
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
// A chart with a panel per side or setting, at most `columns` next to each other.
function inPanels({ $schema, description, data: shown, autosize, ...view }, values, columns) {
  const panels = [...new Set(values.map(({ panel }) => panel))];
  const parts = panels.map((title) => ({ ...structuredClone(view), ...(title ? { title } : {}), transform: [{ filter: { field: "panel", equal: title } }] }));
  return { $schema, description, data: shown, concat: parts, columns, resolve: { scale: { color: "shared" } } };
}

function drawPictures(place) {
  const section = data.sections[place], rows = shownRows(place);
  for (const name of ["heat", "tradeoff"]) {
    const at = `${name}-${place}`, width = document.getElementById(at)?.clientWidth ?? 0, spec = structuredClone(section.charts[name]);
    const values = section[name].filter(({ row }) => rows.has(row)), count = new Set(values.map(({ panel }) => panel)).size;
    const columns = name === "heat" ? 1 : Math.min(width < 460 ? 1 : 3, count), { x, y } = spec.encoding;
    if (name === "tradeoff") spec.width = Math.max(140, width / columns - 70);
    else y.axis = { labelLimit: Math.max(0.35 * width, width - x.sort.length * spec.width.step - LEGEND) };
    if (name === "heat" && values.length > MOST_NUMBERS) spec.layer.length = 1;
    draw(at, inPanels(spec, values, columns), values, ({ row }) => choose(place, row), undefined, ({ row }) => preview(place, row));
    drawn.set(at, () => drawPictures(place)); // the room depends on the width
  }
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
