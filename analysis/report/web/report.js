// A report: choosing a row in a table or a picture shows its learning curves.
const chosen = data.sections.map(() => 0);

// The curves of a row: means and, if they are asked for or a grammar has no mean, its runs.
function drawCurves(place, row = chosen[place]) {
  const section = data.sections[place], curves = section.charts.curves;
  if (!curves) return;
  const y = Number(document.querySelector(`[data-curve="${place}"]`).value), seeds = document.querySelector(`[data-seeds="${place}"]`).checked;
  const own = curves.values.filter((one) => one.row === row && (one.curve ?? y) === y); // runs have all curves
  const averaged = new Set(own.filter(({ seed }) => seed === "mean").map(({ grammar }) => grammar));
  const shown = own.filter(({ points, grammar }) => !points || seeds || !averaged.has(grammar))
    .map(({ points, ...one }) => (points ? { ...one, x: points[0], y: points[y], low: [], high: [] } : one));
  const spec = structuredClone(curves.spec);
  spec.layer[1].encoding.y.title = section.points[y]; // of the lines, above the band
  if (!averaged.size) spec.layer.splice(0, 1);
  document.querySelector(`[data-of="${place}"]`).textContent = `of ${row === chosen[place] ? "" : "the row under the pointer: "}${section.rows[row]}`;
  draw(`curves-${place}`, spec, shown.some(({ grammar }) => grammar) ? shown : [], { empty: "These runs have no curves." });
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

// The charts of a section whose values are rows of its table, in panels; of curves, the script draws one row.
const inRows = (section) => Object.entries(section.charts).filter(([name]) => name !== "curves");

function drawPictures(place) {
  const rows = shownRows(place);
  for (const [name, { spec: whole, values }] of inRows(data.sections[place])) {
    const at = `${name}-${place}`, spec = structuredClone(whole), { x, y } = spec.encoding, cells = spec.width.step;
    const shown = values.filter(({ row }) => rows.has(row)), count = new Set(shown.map(({ panel }) => panel)).size;
    const width = document.getElementById(at)?.clientWidth ?? 0, columns = cells ? 1 : Math.min(width < 460 ? 1 : 3, count);
    if (cells) y.axis = { labelLimit: Math.max(0.35 * width, width - x.sort.length * cells - LEGEND) };
    else spec.width = Math.max(140, width / columns - 70);
    if (cells && shown.length > MOST_NUMBERS) spec.layer.length = 1;
    const told = { clicked: ({ row }) => choose(place, row), pointed: ({ row }) => preview(place, row) };
    draw(at, inPanels(spec, shown, columns), shown, { ...told, again: () => drawPictures(place) }); // the room depends on the width
  }
}

function showRuns(details, section) {
  const at = Object.fromEntries(section.run_names.map((name, at) => [name, at])), cut = section.runs.some((run) => run[at.censored]);
  const heads = ["row", "grammar", "seed", "value", ...(cut ? ["censored"] : []), section.counted === "updates" ? "updates" : "steps", "seconds", "ended by"];
  const rows = section.runs.map((run) => [
    section.rows[run[at.row]], run[at.grammar], run[at.seed], run[at.value], ...(cut ? [run[at.censored] ? "yes" : ""] : []), run[at.steps], run[at.seconds], run[at.failed] ? run[at.error] : run[at.reason],
  ]);
  details.append(scrolling(sortableTable(heads, rows), `All runs of ${section.name}`, " tall"));
}

data.sections.forEach((section, place) => {
  drawPictures(place);
  choose(place, section.charts.curves?.values[0].row ?? 0);
  const table = document.getElementById(`table-${place}`);
  for (const [name] of inRows(section)) document.getElementById(`${name}-${place}`).addEventListener("mouseleave", () => preview(place));
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
