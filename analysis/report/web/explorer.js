// The atlas: settings to choose, models as points, one of them in full, and results of one's own among them.
const own = { models: [], name: "" };
let at = 0, axes = 0, chosen = null;

const current = () => data.settings[at];
const every = () => [...current().models, ...own.models];
const coordinate = (value) => (current().ratio ? Math.log2(Math.max(value, data.least)) : value);

function fill(select, values, value) {
  select.replaceChildren(...values.map(([key, text]) => element("option", text, { value: key })));
  select.value = value;
}

function shownChoices() {
  const setting = current().setting;
  for (const name of data.choices) {
    const values = [...new Set(data.settings.map((one) => one.setting[name]))];
    fill(document.querySelector(`[data-choice="${name}"]`), values.map((value) => [value, value]), setting[name]);
  }
  fill(document.getElementById("axes"), current().axes.map((one, place) => [place, one.name]), axes);
  const rest = data.names.filter((name) => !data.choices.includes(name) && setting[name] !== null && setting[name] !== "");
  document.getElementById("setting").textContent = `${current().models.length} models; ${rest.map((name) => `${name.replaceAll("_", " ")} ${setting[name]}`).join(", ")}`;
}

// The setting with this choice that is nearest to the one shown, since not everything was measured with everything.
function chooseSetting(name, value) {
  const before = current().setting;
  const fit = (one) => (one.setting[name] === value ? 100 : 0) + data.choices.filter((other) => one.setting[other] === before[other]).length;
  at = data.settings.reduce((best, one, place) => (fit(one) > fit(data.settings[best]) ? place : best), 0);
  axes = 0; own.models = []; own.name = ""; chosen = null;
  document.getElementById("told").textContent = "";
  show();
}

function positioned() {
  const used = current().axes[axes];
  if (!used) return [];
  const found = [];
  for (const model of every()) {
    const values = used.grammars.map((grammar) => model.means[grammar]);
    const needed = used.weights[0].map((_, place) => used.weights.some((weights) => weights[place] !== 0));
    if (values.some((value, place) => needed[place] && value === undefined)) continue;
    const point = used.weights.map((weights) => weights.reduce((sum, weight, place) => sum + (weight ? weight * (coordinate(values[place]) - used.centre[place]) : 0), 0));
    found.push({ label: model.label, family: model.own ? own.name : model.family, own: Boolean(model.own), x: point[0], y: point[1] });
  }
  return found;
}

function drawSpace() {
  const spec = structuredClone(data.charts.space), used = current().axes[axes];
  spec.encoding.x.title = used?.titles[0]; spec.encoding.y.title = used?.titles[1];
  draw("space", spec, positioned(), (datum) => choose(datum.label), "Too few models have all grammars here; the table below has them.");
}

// As icy's own placement: most shared grammars first, then the root mean square of their differences.
function neighbours(model) {
  const grammars = current().grammars.filter((grammar) => grammar !== "concat");
  const mine = grammars.filter((grammar) => model.means[grammar] !== undefined);
  const found = [];
  for (const other of current().models) {
    if (other.key === model.key) continue; // also one's own results of a model of the atlas
    const common = mine.filter((grammar) => other.means[grammar] !== undefined);
    if (common.length < Math.max(1, Math.min(data.shared, mine.length))) continue;
    const gaps = common.map((grammar) => (coordinate(other.means[grammar]) - coordinate(model.means[grammar])) ** 2);
    found.push({ label: other.label, common: common.length, distance: Math.sqrt(gaps.reduce((a, b) => a + b, 0) / gaps.length) });
  }
  found.sort((a, b) => b.common - a.common || a.distance - b.distance);
  return found.slice(0, data.listed);
}

function rank(model, grammar) {
  const others = current().models.filter((other) => other.key !== model.key && other.means[grammar] !== undefined).map((other) => other.means[grammar]);
  const better = others.filter((value) => (current().ratio ? value < model.means[grammar] : value > model.means[grammar]));
  const sorted = [...others].sort((a, b) => a - b), middle = sorted.length >> 1;
  const median = !sorted.length ? null : sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { rank: better.length + 1, of: others.length + 1, median };
}

const shown = (value, model, grammar) => (value === undefined ? "-" : value.toFixed(2) + (model.cut?.includes(grammar) ? "†" : ""));

function choose(label) {
  const model = every().find((one) => one.label === label) ?? current().models[0];
  chosen = model.label;
  const place = document.getElementById("model"), parts = [element("h3", model.label)];
  const about = [model.own ? `from ${own.name}` : model.source, model.parameters === null || model.parameters === undefined ? "" : `${model.parameters.toLocaleString("en")} parameters`];
  parts.push(element("p", about.filter(Boolean).join("; ")));
  const rows = current().grammars.filter((grammar) => grammar !== "concat" && model.means[grammar] !== undefined).map((grammar) => {
    const among = rank(model, grammar);
    return [grammar, shown(model.means[grammar], model, grammar), model.seeds[grammar], `${among.rank} of ${among.of}`, among.median === null ? null : among.median.toFixed(2)];
  });
  const table = sortableTable(["grammar", current().ratio ? "ratio" : "accuracy", "seeds", "rank", "median of the others"], rows);
  table.id = "ranks";
  parts.push(table, element("h3", "Nearest in bias space"));
  const list = element("ol", null, { id: "neighbours" });
  for (const one of neighbours(model)) {
    const item = element("li", null), button = element("button", one.label, { type: "button", "data-model": one.label });
    item.append(button, ` at ${one.distance.toFixed(2)}, over ${one.common} grammars`);
    list.append(item);
  }
  parts.push(list);
  const around = element("div", null, { class: "scrolls", tabindex: "0", role: "region", "aria-label": "The chosen model" });
  around.append(...parts);
  place.replaceChildren(around);
}

function showAll() {
  const grammars = current().grammars.filter((grammar) => grammar !== "concat");
  const table = sortableTable(["model", "parameters", ...grammars], every().map((model) => [
    model.label, model.parameters ?? null, ...grammars.map((grammar) => shown(model.means[grammar], model, grammar)),
  ]));
  for (const row of table.tBodies[0].rows) {
    const cell = element("th", null, { scope: "row" }), label = row.cells[0].textContent;
    cell.append(element("button", label, { type: "button", "data-model": label }));
    row.cells[0].replaceWith(cell);
    [...row.cells].slice(2).forEach((one) => { one.dataset.value = one.textContent.replace("†", ""); });
  }
  document.getElementById("all").replaceChildren(table);
}

function show() { shownChoices(); drawSpace(); choose(chosen); showAll(); }

// -- results of one's own ------------------------------------------------------------------------------------------

function parsed(text) {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const sign = text[i], row = rows[rows.length - 1];
    if (quoted) {
      if (sign === '"' && text[i + 1] === '"') { row[row.length - 1] += '"'; i++; }
      else if (sign === '"') quoted = false;
      else row[row.length - 1] += sign;
    } else if (sign === '"') quoted = true;
    else if (sign === ",") row.push("");
    else if (sign === "\n") rows.push([""]);
    else if (sign !== "\r") row[row.length - 1] += sign;
  }
  const [heads, ...body] = rows.filter((row) => row.length > 1 || row[0] !== "");
  return (body ?? []).map((row) => Object.fromEntries(heads.map((head, place) => [head, row[place] ?? ""])));
}

function alike(text, value) {
  if (value === null || value === "") return text === "" || text === undefined;
  return typeof value === "number" ? text !== "" && Number(text) === value : text === String(value);
}

function place(text, name) {
  const rows = parsed(text), told = document.getElementById("told");
  const lacking = ["model", "grammar", "value", ...data.choices].filter((column) => !rows.length || !(column in rows[0]));
  told.className = "error";
  if (lacking.length) { told.textContent = `This is no results.csv of icy: it has no column ${lacking.join(", ")}.`; return; }
  const good = rows.filter((row) => row.value !== "" && !/^(true|1)$/i.test(row.failed ?? ""));
  const fits = (one) => good.filter((row) => data.names.every((column) => alike(row[column], one.setting[column])));
  if (!fits(current()).length) {
    const better = data.settings.findIndex((one) => fits(one).length);
    if (better < 0) { told.textContent = "The atlas has nothing under the settings of these results."; return; }
    at = better; axes = 0;
  }
  const models = new Map();
  const own_rows = fits(current()), sizes = new Set(own_rows.map((row) => row.hidden_size)).size > 1;
  for (const row of own_rows) {
    const more = [sizes ? `E=${row.hidden_size}` : "", row.options ?? ""].filter(Boolean).join(", ");
    const label = `${row.model}${more ? ` (${more})` : ""}`, key = JSON.stringify([row.model, row.hidden_size ?? "", row.options ?? ""]);
    if (!models.has(label)) models.set(label, { key, label: `${label} *`, plain: label, own: true, values: {}, cut: [], parameters: row.parameters ? Number(row.parameters) : null });
    const model = models.get(label);
    (model.values[row.grammar] ??= []).push(Number(row.value));
    if (/^(true|1)$/i.test(row.cut ?? "") && !model.cut.includes(row.grammar)) model.cut.push(row.grammar);
  }
  own.name = name;
  own.models = [...models.values()].map((model) => {
    const entries = Object.entries(model.values);
    return { ...model, means: Object.fromEntries(entries.map(([grammar, values]) => [grammar, values.reduce((a, b) => a + b, 0) / values.length])),
      seeds: Object.fromEntries(entries.map(([grammar, values]) => [grammar, values.length])) };
  });
  told.className = "";
  told.textContent = `Placed: ${own.models.map((model) => model.plain).join(", ")}, of ${own_rows.length} runs, marked *.`;
  chosen = own.models[0].label;
  show();
}

async function read(file) { if (file) place(await file.text(), file.name); }

document.addEventListener("change", (event) => {
  if (event.target.dataset?.choice) chooseSetting(event.target.dataset.choice, event.target.value);
  if (event.target.id === "axes") { axes = Number(event.target.value); drawSpace(); }
  if (event.target.id === "file") read(event.target.files[0]);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-model]");
  if (button) { choose(button.dataset.model); document.getElementById("model-title").scrollIntoView({ block: "nearest" }); }
});
document.getElementById("filter").addEventListener("input", (event) => {
  const table = document.querySelector("#all table"), count = filtered(table, event.target.value);
  document.getElementById("count").textContent = event.target.value ? `${count} of ${table.tBodies[0].rows.length} models` : "";
});
const drop = document.getElementById("drop");
for (const [kind, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.toggle("over", over); if (kind === "drop") read(event.dataTransfer.files[0]); });
}
show();
document.body.dataset.ready = "yes";
