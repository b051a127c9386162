// Makes the pages smoother; everything works without this script. It sends forms and replaces the old page by the new one.
// So it can set the focus, play tones, and measure the time from picture to answer.

const TONES = {
  right: [523.25, 659.25, 783.99],
  wrong: [311.13, 293.66],
  end: [523.25, 659.25, 783.99, 1046.5],
};
const LONG = 0.14; // length of a tone in seconds

const firstShown = new Map(); // time when the picture of an item was first shown, by item
const drafts = new Map(); // unsent answers, by item; they are restored when the item is shown again
let sounds = null; // created at the first key or click, as browsers require
let busy = false;
let turning = false; // Escape was pressed while a page was loading

const game = () => document.querySelector(".game");
const answer = () => document.querySelector("input[name=answer]");

// -- tones ------------------------------------------------------------------------------------------------------------

function wake() {
  if (sounds === null && typeof AudioContext === "function") sounds = new AudioContext();
  if (sounds?.state === "suspended") sounds.resume();
}

function play(name) {
  if (sounds === null || !(name in TONES)) return;
  TONES[name].forEach((pitch, place) => {
    const start = sounds.currentTime + place * LONG;
    const tone = new OscillatorNode(sounds, { type: "sine", frequency: pitch });
    const loudness = new GainNode(sounds, { gain: 0 });
    loudness.gain.setValueAtTime(0, start);
    loudness.gain.linearRampToValueAtTime(0.15, start + 0.02);
    loudness.gain.linearRampToValueAtTime(0, start + LONG);
    tone.connect(loudness).connect(sounds.destination);
    tone.start(start);
    tone.stop(start + LONG);
  });
}

// -- setup of a page --------------------------------------------------------------------------------------------------

function noteTime() {
  const trial = game()?.dataset.trial;
  if (!trial || !answer() || firstShown.has(trial)) return;
  firstShown.set(trial, performance.now());
  const picture = document.querySelector(".picture");
  if (picture && !picture.complete) {
    picture.addEventListener("load", () => firstShown.set(trial, performance.now()), { once: true });
  }
}

function fillIn() {
  const viewport = document.querySelector("input[name=viewport]");
  if (viewport) viewport.value = `${window.innerWidth}x${window.innerHeight}`;
  if (answer()) answer().value = drafts.get(game()?.dataset.trial) ?? "";
}

function goBackLater() {
  const link = document.querySelector("a[data-return]");
  if (link) setTimeout(() => location.assign(link.href), link.dataset.return * 1000);
}

function arrive() {
  noteTime();
  fillIn();
  goBackLater();
}

// -- from page to page ------------------------------------------------------------------------------------------------

function put(text) {
  const next = new DOMParser().parseFromString(text, "text/html");
  const main = next.querySelector("main");
  if (!main) return false;
  for (const wanted of main.querySelectorAll("[autofocus]")) {
    wanted.removeAttribute("autofocus"); // browsers apply autofocus only when a page loads
    wanted.dataset.focus = "";
  }
  document.title = next.title;
  document.querySelector("main").replaceWith(main);
  document.querySelector("footer")?.remove();
  const footer = next.querySelector("footer");
  if (footer) document.body.append(footer);
  return true;
}

function announce() {
  const tone = document.querySelector("[data-tone]");
  if (tone && game()?.dataset.sound !== "off") play(tone.dataset.tone);
  const live = document.querySelector("[data-live]");
  document.getElementById("live").textContent = live ? live.textContent.trim().replace(/\s+/g, " ") : "";
  const wanted = document.querySelector("main [data-focus]");
  if (!wanted) window.scrollTo(0, 0);
  (wanted ?? document.querySelector("main")).focus({ preventScroll: wanted === null });
}

async function send(form) {
  const reaction = form.querySelector("input[name=reaction]");
  const shown = firstShown.get(game()?.dataset.trial);
  if (reaction && shown !== undefined) reaction.value = Math.round(performance.now() - shown);
  const found = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!put(await found.text())) throw new Error("no page");
  arrive();
  announce();
}

async function onSubmit(event) {
  const form = event.target;
  if (!form.matches("[data-smooth]")) return;
  event.preventDefault();
  if (busy) return;
  busy = true;
  try {
    await send(form);
  } catch {
    form.submit(); // without the script: the browser shows what is wrong
  } finally {
    busy = false;
  }
  if (turning) turn();
}

// -- reports to the server --------------------------------------------------------------------------------------------

function note(kind) {
  const place = game();
  if (place) navigator.sendBeacon(place.dataset.notes, new URLSearchParams({ form: place.dataset.form, kind }));
}

function turn() {
  turning = busy;
  if (!busy) document.querySelector(".tabs [data-other]")?.form.requestSubmit();
}

function onKey(event) {
  if (event.key !== "Escape" || event.isComposing || !game()) return;
  event.preventDefault();
  turn();
}

function onInput(event) {
  if (event.target === answer()) drafts.set(game()?.dataset.trial, event.target.value);
}

document.addEventListener("submit", onSubmit);
document.addEventListener("keydown", onKey);
document.addEventListener("input", onInput);
document.addEventListener("paste", (event) => event.target === answer() && note("paste"));
window.addEventListener("blur", () => note("blur"));
for (const gesture of ["keydown", "pointerdown"]) document.addEventListener(gesture, wake);
arrive();
