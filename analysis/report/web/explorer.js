// The atlas: settings to choose, models as points, details of the chosen model, and the reader's own results.
const own = { name: "", rows: [], models: [] }; // rows of all settings; models of the setting shown
let at = 0, axes = 0, chosen = null, near = [];

const current = () => data.settings[at];
const every = () => [...current().models, ...own.models];
const coordinate = (value) => (current().ratio ? Math.log2(Math.max(value, data.least)) : value);
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// Settings as text: settings of the atlas are numbers, words or null; settings of a file are text.
const text = (value) => String(value ?? "");
const whole = (number) => (text(number) === "" ? "" : String(Number(number))); // 128.0 is 128
const said = (name, value) => text(value) || (name === "settings" ? "default" : "none");
const heading = (name) => name.replaceAll("_", " ");

// The values to choose from: all values of the first columns; for others, values that were measured with the choice.
function options(name) {
  const same = (one) => data.choices.every((other) => one.setting[other] === current().setting[other]);
  const among = data.choices.includes(name) ? data.settings : data.settings.filter(same);
  return [...new Set(among.map((one) => text(one.setting[name])))];
}

function fill(select, values, value) {
  select.replaceChildren(...values.map(([key, word]) => element("option", word, { value: key })));
  select.value = value;
  select.closest("label").hidden = values.length < 2;
}

function shownChoices() {
  const setting = current().setting, open = new Set();
  for (const select of document.querySelectorAll("[data-choice]")) {
    const name = select.dataset.choice, values = options(name);
    fill(select, values.map((value) => [value, said(name, value)]), text(setting[name]));
    if (values.length > 1) open.add(name);
  }
  fill(document.getElementById("axes"), current().axes.map((one, place) => [place, one.name]), axes);
  const rest = data.names.filter((name) => !open.has(name) && text(setting[name])).map((name) => `${heading(name)} ${setting[name]}`);
  document.getElementById("setting").textContent = `${counted(current().models.length, "model")}; ${rest.join(", ")}`;
}

// The index of the setting with the largest number (the first if there are several).
const best = (number) => data.settings.reduce((found, one, place) => (number(one) > number(data.settings[found]) ? place : found), 0);

// The setting with this choice that is nearest to the current setting, since not all combinations were measured.
function chooseSetting(name, value) {
  const wanted = { ...current().setting, [name]: value };
  const weight = (other) => (other === name ? 10000 : data.choices.includes(other) ? 100 : 1);
  const fit = (other, one) => (text(one.setting[other]) === text(wanted[other]) ? weight(other) : 0);
  at = best((one) => data.names.reduce((sum, other) => sum + fit(other, one), 0));
  axes = 0; chosen = null;
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
    const marked = { own: Boolean(model.own), chosen: model.label === chosen, near: near.includes(model.label) };
    found.push({ label: model.label, family: model.own ? own.name : model.family, ...marked, x: point[0], y: point[1] });
  }
  return found;
}

function drawSpace() {
  const spec = structuredClone(data.space), used = current().axes[axes];
  const points = positioned(), drawn = new Set(points.map((one) => one.label)), rest = every().filter((one) => !drawn.has(one.label));
  const families = [...new Set(current().models.map((one) => one.family))].sort();
  spec.encoding.x.title = used?.titles[0]; spec.encoding.y.title = used?.titles[1];
  spec.layer[1].encoding.color.scale = { domain: families, range: families.map((one) => data.colours[one]) };
  document.getElementById("rest").textContent = used && rest.length ? `Not drawn, because grammars of these axes are missing: ${rest.map((one) => one.label).join(", ")}.` : "";
  draw("space", spec, points, { clicked: ({ label }) => choose(label), empty: "Too few models have all grammars here; the table below has them." });
}

// As in icy's placement: most shared grammars first, then the root mean square of their differences.
function neighbours(model) {
  const grammars = current().grammars.filter((grammar) => grammar !== "concat");
  const mine = grammars.filter((grammar) => model.means[grammar] !== undefined);
  const found = [];
  for (const other of current().models) {
    if (other.key === model.key) continue; // also one's own results of a model of the atlas
    const common = mine.filter((grammar) => other.means[grammar] !== undefined);
    if (common.length < Math.max(1, Math.min(data.shared, mine.length))) continue;
    const gaps = common.map((grammar) => (coordinate(other.means[grammar]) - coordinate(model.means[grammar])) ** 2);
    found.push({ label: other.label, common: common.length, distance: Math.sqrt(mean(gaps)) });
  }
  found.sort((a, b) => b.common - a.common || a.distance - b.distance);
  return found.slice(0, data.listed);
}

// The rank among the others, the easiest first; "2–5" for four equal values, "-" for a model that was cut.
function rank(model, grammar) {
  const mine = model.means[grammar], others = current().models.filter((other) => other.key !== model.key).map((other) => other.means[grammar]).filter((value) => value !== undefined);
  const alike = others.filter((value) => Math.abs(value - mine) < 1e-9); // means of the same runs, added in any order
  const better = others.filter((value) => !alike.includes(value) && value < mine === current().ratio);
  const sorted = [...others].sort((a, b) => a - b), middle = sorted.length >> 1;
  const median = !sorted.length ? null : sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  if (model.cut?.includes(grammar)) return { rank: "-", median };
  return { rank: `${better.length + 1}${alike.length ? `–${better.length + 1 + alike.length}` : ""} of ${others.length + 1}`, median };
}

const shown = (value, model, grammar) => (value === undefined ? "-" : value.toFixed(2) + (model.cut?.includes(grammar) ? "†" : ""));

const button = (label) => element("button", label, { type: "button", "data-model": label });

function choose(label) {
  const model = every().find((one) => one.label === label) ?? current().models[0];
  chosen = model.label;
  const place = document.getElementById("model"), parts = [element("h3", model.label, { tabindex: "-1" })];
  const about = [model.own ? `from ${own.name}` : model.source, model.parameters === null || model.parameters === undefined ? "" : `${model.parameters.toLocaleString("en")} parameters`];
  parts.push(element("p", about.filter(Boolean).join("; ")));
  const rows = current().grammars.filter((grammar) => grammar !== "concat" && model.means[grammar] !== undefined).map((grammar) => {
    const among = rank(model, grammar);
    const updates = current().ratio ? [model.updates[grammar] ?? null] : [];
    return [grammar, shown(model.means[grammar], model, grammar), ...updates, model.seeds[grammar], among.rank, among.median === null ? null : among.median.toFixed(2)];
  });
  const table = sortableTable(["grammar", ...(current().ratio ? ["ratio", "updates"] : ["accuracy"]), "seeds", "rank", "others' median"], rows);
  table.id = "ranks";
  parts.push(table, element("h3", "Nearest in bias space"));
  const nearest = neighbours(model);
  const items = nearest.map((one) => element("li", [button(one.label), ` at ${one.distance.toFixed(2)}, over ${counted(one.common, "grammar")}`]));
  parts.push(element("ol", items, { id: "neighbours" }));
  place.replaceChildren(scrolling(parts, "The chosen model"));
  near = nearest.map((one) => one.label);
  drawSpace();
}

function showAll() {
  const grammars = current().grammars.filter((grammar) => grammar !== "concat");
  const table = sortableTable(["model", "parameters", ...grammars], every().map((model) => [
    model.label, model.parameters ?? null, ...grammars.map((grammar) => shown(model.means[grammar], model, grammar)),
  ]));
  for (const row of table.tBodies[0].rows) {
    const label = row.cells[0].textContent;
    row.cells[0].replaceWith(element("th", button(label), { scope: "row" }));
    const updates = every().find((one) => one.label === label).updates;
    grammars.forEach((grammar, at) => {
      const cell = row.cells[at + 2];
      if (!current().ratio || !updates[grammar]) return;
      cell.dataset.value = cell.textContent;
      cell.append(element("small", `${updates[grammar]} updates`));
    });
  }
  document.getElementById("all").replaceChildren(table);
  filterAll();
}

function filterAll() {
  const asked = document.getElementById("filter").value, table = document.querySelector("#all table"), count = filtered(table, asked);
  document.getElementById("count").textContent = asked ? `${count} of ${table.tBodies[0].rows.length} models` : "";
}

function show() { placeOwn(); shownChoices(); choose(chosen ?? own.models[0]?.label); showAll(); }

// -- the reader's own results --------------------------------------------------------------------------------------

const CELL = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g; // a cell, in quotes or not, and what ends it
function cells(csv) {
  const rows = [[]];
  for (const [, quoted, plain, end] of csv.matchAll(CELL)) {
    rows.at(-1).push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0]);
}

const yes = (word) => /^(true|1)$/i.test(word ?? "");

function alike(word, value) {
  if (value === null || value === "") return text(word) === "";
  return typeof value === "number" ? text(word) !== "" && Number(word) === value : word === String(value);
}

const fits = (row, one) => data.names.every((name) => alike(row[name], one.setting[name]));

// Columns in which rows have values that none of these settings has, with these values.
function unlike(rows, settings) {
  const found = new Map();
  for (const name of data.names) {
    const values = rows.map((row) => row[name]).filter((word) => !settings.some((one) => alike(word, one.setting[name])));
    if (values.length) found.set(name, values);
  }
  return found;
}

function listed(name, values) {
  const words = [...new Set(values.map((value) => said(name, value)))];
  return `${heading(name)} ${words.slice(0, 5).join(", ")}${words.length > 5 ? ", ..." : ""}`;
}

const inWords = (columns) => [...columns].map(([name, values]) => listed(name, values)).join("; ");

// A sentence on the settings of rows that the atlas does not have; if it has each value, its nearest setting.
function elsewhere(rows) {
  const alone = unlike(rows, data.settings);
  const nearest = data.settings[best((one) => data.names.filter((name) => alike(rows[0][name], one.setting[name])).length)];
  const [columns, among] = alone.size ? [alone, data.settings] : [unlike(rows, [nearest]), [nearest]];
  const there = [...columns.keys()].map((name) => [name, among.map((one) => one.setting[name])]);
  return `These results have ${inWords(columns)}; ${alone.size ? "the atlas" : "the nearest setting of the atlas"} has ${inWords(there)}.`;
}

// The reason why a file cannot be placed; "" if it can.
function refused(name, heads, rows, good) {
  if (!heads) return `${name} is empty.`;
  const lacking = ["model", "grammar", "value", ...data.choices].filter((column) => !heads.includes(column));
  if (lacking.length) return `This is not a results.csv of icy; missing columns: ${lacking.join(", ")}.`;
  if (!rows.length) return `${name} has no runs.`;
  if (!good.length) return `${name} has no runs with a value.`;
  return good.some((row) => data.settings.some((one) => fits(row, one))) ? "" : elsewhere(good);
}

function tell(sentence, wrong = false) {
  const told = document.getElementById("told");
  told.className = wrong ? "error" : "";
  told.textContent = sentence;
}

function take(csv, name) {
  const [heads, ...body] = cells(csv);
  const rows = body.map((row) => Object.fromEntries(heads.map((head, place) => [head, row[place] ?? ""])));
  const good = rows.filter((row) => text(row.value) !== "" && Number.isFinite(Number(row.value)) && !yes(row.failed));
  const why = refused(name, heads, rows, good);
  if (why) { tell(`${why}${own.name ? ` The earlier file, ${own.name}, is still shown.` : ""}`, true); return; }
  Object.assign(own, { name, rows: good });
  const fitting = (one) => good.some((row) => fits(row, one));
  if (!fitting(current())) { at = data.settings.findIndex(fitting); axes = 0; }
  chosen = null;
  show();
}

function placeOwn() {
  if (!own.rows.length) return;
  const rows = own.rows.filter((row) => fits(row, current())), rest = own.rows.filter((row) => !fits(row, current()));
  own.models = models(rows);
  const others = rest.length ? `${counted(rest.length, "run")} ${rest.length === 1 ? "is" : "are"} under other settings (${inWords(unlike(rest, [current()]))})` : "";
  const placed = `Placed: ${own.models.map((model) => model.plain).join(", ")}, of ${counted(rows.length, "run")} in ${own.name}, marked *`;
  tell(rows.length ? `${placed}${others && `; ${others}`}.` : `No run of ${own.name} is placed here: ${others}.`);
}

function models(rows) {
  const found = new Map(), sizes = new Set(rows.map((row) => row.hidden_size)).size > 1;
  for (const row of rows) {
    const key = JSON.stringify([row.model, whole(row.hidden_size), row.options ?? ""]);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return [...found].map(([key, own_rows]) => model(key, own_rows, sizes));
}

function model(key, rows, sizes) {
  const first = rows[0], more = [sizes ? `E=${whole(first.hidden_size)}` : "", first.options ?? ""].filter(Boolean).join(", ");
  const plain = `${first.model}${more ? ` (${more})` : ""}`, means = {}, seeds = {}, updates = {};
  for (const grammar of new Set(rows.map((row) => row.grammar))) {
    const values = rows.filter((row) => row.grammar === grammar).map((row) => Number(row.value));
    means[grammar] = mean(values);
    seeds[grammar] = values.length;
  }
  const cut = [...new Set(rows.filter((row) => yes(row.censored ?? row.cut)).map((row) => row.grammar))];
  for (const grammar of Object.keys(means)) {
    const counts = rows.filter((row) => row.grammar === grammar).map((row) => Number(row.crossing || row.steps)), made = mean(counts);
    if (made) updates[grammar] = (cut.includes(grammar) ? "> " : "") + (made < 10 ? made.toFixed(1) : Math.round(made).toLocaleString("en"));
  }
  return { key, label: `${plain} *`, plain, own: true, means, seeds, updates, cut, parameters: first.parameters ? Number(first.parameters) : null };
}

async function read(file) { if (file) take(await file.text(), file.name); }

document.addEventListener("change", (event) => {
  if (event.target.dataset?.choice) chooseSetting(event.target.dataset.choice, event.target.value);
  if (event.target.id === "axes") { axes = Number(event.target.value); drawSpace(); }
  if (event.target.id === "file") { read(event.target.files[0]); event.target.value = ""; } // so that it can be chosen again
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-model]");
  if (!button) return;
  const replaced = button.closest("#model") !== null; // with what is focused, which would leave the keyboard at the top of the page
  choose(button.dataset.model);
  if (replaced) document.querySelector("#model h3").focus({ preventScroll: true });
  document.getElementById("model-title").scrollIntoView({ block: "nearest" });
});
document.getElementById("filter").addEventListener("input", filterAll);
const drop = document.getElementById("drop");
const files = (event) => event.dataTransfer?.types.includes("Files"); // and not words, for the field above the table
document.addEventListener("dragover", (event) => { if (files(event)) { event.preventDefault(); drop.classList.add("over"); } });
document.addEventListener("dragleave", (event) => { if (event.relatedTarget === null) drop.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  drop.classList.remove("over");
  if (files(event)) { event.preventDefault(); read(event.dataTransfer.files[0]); }
});
show();
document.body.dataset.ready = "yes";
