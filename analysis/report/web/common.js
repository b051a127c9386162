"use strict";
// Common code of reports and the atlas: data, theme, tables that sort and filter, and charts in the page's colors.
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const charts = new Map(); // by name: the specification, values and view of a chart, its layout, and how to draw it again

// Below this width, legends are under their charts. A chart is drawn again if its width changes by a step.
const NARROW = 560;
const narrow = (place) => place.clientWidth < NARROW;
const layout = (place) => Math.floor((place.clientWidth - NARROW) / 100); // below 0 for a narrow one
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (layout(target) !== charts.get(target.id).layout) charts.get(target.id).again();
});

// The look of a chart: text has the color of the page, and page.css gives the theme's colors to its axes.
function look(place) {
  const ink = "currentColor", labelLimit = Math.min(320, Math.round(0.35 * place.clientWidth)); // names leave room for what they name
  return {
    background: "transparent", font: "system-ui, sans-serif",
    axis: { labelColor: ink, titleColor: ink, gridColor: "#d8d8d4", domainColor: "#595959", tickColor: "#595959", labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal" },
    axisY: { labelLimit }, view: { stroke: null }, point: { color: ink }, text: { color: ink }, rule: { color: ink }, title: { color: ink, fontSize: 12, anchor: "start" },
    legend: { labelColor: ink, titleColor: ink, labelFontSize: 11, titleFontSize: 11, labelLimit, ...(narrow(place) ? { orient: "bottom", columns: 2 } : {}) },
  };
}

const withValues = (spec, values) => structuredClone({ ...spec, data: { name: "shown", values } });

// Draw a chart. If it exists with the same specification, only its values change, and its tooltip stays.
async function draw(name, spec, values, more = {}) {
  const { clicked, pointed, empty = "Nothing to draw.", again = () => draw(name, spec, values, more) } = more;
  const place = document.getElementById(name), kept = charts.get(name);
  if (!place) return;
  const chart = { spec, values, again, layout: layout(place), view: kept?.view };
  charts.set(name, chart);
  const alike = kept?.layout === chart.layout && JSON.stringify(kept.spec) === JSON.stringify(spec);
  if (alike && kept.view && values.length) { await kept.view.data("shown", structuredClone(values)).runAsync(); return; }
  resized.observe(place);
  kept?.view?.finalize();
  delete chart.view;
  if (!values.length) { place.textContent = empty; return; }
  const { view } = await vegaEmbed(place, withValues(spec, values), { renderer: "svg", config: look(place), tooltip: { theme: "page" }, actions: false });
  if (chart !== charts.get(name)) { view.finalize(); return; } // it was drawn anew meanwhile
  chart.view = view;
  for (const [event, told] of [["click", clicked], ["mouseover", pointed]])
    if (told) view.addEventListener(event, (_, item) => { if (item?.datum) told(item.datum); });
}

// Save a chart in light colors on white, whatever the page's theme.
async function save(name, type) {
  const { spec, values } = charts.get(name) ?? {}, place = document.getElementById(name), aside = element("div", null);
  if (!values?.length) return;
  const sized = spec.width === "container" ? { ...spec, width: place.clientWidth } : spec;
  const config = { ...look(place), background: "white" };
  const { view } = await vegaEmbed(aside, withValues(sized, values), { renderer: "none", config, actions: false });
  element("a", null, { href: await view.toImageURL(type, 2), download: `${name}.${type}` }).click();
  view.finalize();
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (button) save(button.dataset.save, button.dataset.type);
});

// On paper, tables that are wider than a page are made smaller.
const PAGE = 1040; // pixels, of a landscape page within its margins
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([data-runs])")) details.open = true;
  for (const table of document.querySelectorAll("table")) table.style.zoom = Math.min(1, PAGE / table.scrollWidth);
});
addEventListener("afterprint", () => { for (const table of document.querySelectorAll("table")) table.style.zoom = ""; });

// A region that scrolls, for a table that may be wider or taller than its place.
function scrolling(content, label, more = "") {
  return element("div", content, { class: `scrolls${more}`, tabindex: "0", role: "region", "aria-label": label });
}

function setTheme(theme) {
  root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}
document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));

// Numbers before texts; rows without a number are last in both sort orders.
function key(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text.replace(/^[~<>]\s*|†$/g, "").replaceAll(",", ""));
  return text === "" || text === "-" || text === "failed" ? null : Number.isNaN(number) ? text : number;
}

function compared(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true })) : typeof a === "number" ? -1 : 1;
  return down ? -order : order;
}

// Columns with words are aligned left and may have several lines, so that the numbers next to them stay visible.
function align(table) {
  const rows = [...table.tBodies[0].rows];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const words = column > 0 && rows.some((row) => typeof key(row.cells[column]) === "string");
    for (const cell of [head, ...rows.map((row) => row.cells[column])]) cell.classList.toggle("words", words);
  });
}

function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const down = heads[column].getAttribute("aria-sort") === "ascending";
  heads.forEach((head, at) => head.setAttribute("aria-sort", at === column ? (down ? "descending" : "ascending") : "none"));
  const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
  rows.sort((a, b) => compared(a[0], b[0], down));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function filtered(table, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const said = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => said.includes(word));
    shown += !row.hidden;
  }
  return shown;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-sort]");
  if (button) sortBy(button.closest("table"), Number(button.dataset.sort));
});

// An element with a text, an element, or several; null for nothing.
function element(name, content, attributes = {}) {
  const made = document.createElement(name);
  if (content !== null) made.append(...[content].flat());
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function sortableTable(heads, rows) {
  const button = (name, at) => element("button", name, { type: "button", "data-sort": at });
  const head = heads.map((name, at) => element("th", button(name, at), { scope: "col", "aria-sort": "none" }));
  const body = rows.map((row) => element("tr", row.map((value) => element("td", value === null ? "-" : String(value)))));
  const table = element("table", [element("thead", element("tr", head)), element("tbody", body)]);
  align(table);
  return table;
}

// Regions that continue to the right fade there, as some systems hide scroll bars.
const fade = (region) => region.classList.toggle("more", region.scrollLeft + region.clientWidth < region.scrollWidth - 1);
const fading = new ResizeObserver((entries) => { for (const { target } of entries) fade(target.closest(".scrolls")); });
document.querySelectorAll(".scrolls").forEach((region) => {
  for (const one of [region, ...region.children]) fading.observe(one);
});
document.addEventListener("scroll", ({ target }) => { if (target.classList?.contains("scrolls")) fade(target); }, true);

document.querySelectorAll("table").forEach(align);
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
