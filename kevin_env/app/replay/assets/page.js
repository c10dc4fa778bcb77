"use strict";
// Recorded text is only ever put into text nodes; nothing here parses HTML.
const DATA = JSON.parse(document.getElementById("data").textContent);
const PANES = ["kernel", "diff", "feedback", "prompt", "reply", "numbers"];
const STAGES = ["queue", "build", "load", "verify", "time"];
const KINDS = { comment: "c", keyword: "k", string: "s", number: "n", function: "f", builtin: "b", decorator: "d" };
const state = { at: 0, turn: 0, pane: "kernel", base: "previous", words: "", sort: "file", shown: DATA.episodes.map((_, n) => n) };

const fixed = (value, digits = 2) => (value === null || value === undefined ? "" : value.toFixed(digits));
// Two decimals, or two digits if that is more.
const figure = value => (value > 0 && value < 0.1 ? String(Number(value.toPrecision(2))) : value.toFixed(2));
const times = value => (value === null || value === undefined ? "" : figure(value) + "x");
const faster = value => make("span", value > 0 && value < 1 ? { class: "slow", title: "slower than the reference" } : {}, times(value));
const look = ({ category, kind }) => (kind === "too_noisy" ? "noisy" : category);
const byId = id => document.getElementById(id);

function make(name, attributes, ...children) {
  const svg = make.svg.has(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}
make.svg = new Set(["svg", "line", "rect", "path", "circle", "text", "g", "title"]);

const episode = () => DATA.episodes[state.at];
const turns = () => (episode() ? episode().turns : []);
const current = () => turns()[state.turn];
const best = item => item.turns[item.best]?.speedup ?? -1;
const codeOf = turn => (turn.lines === null ? null : (turn.code ??= turn.lines.map(line => line.map(piece => piece[1]).join("")).join("\n")));

// ---- which trajectories are shown

function haystack(item) {
  if (!item.hay) {
    const parts = [item.problem, item.model, item.device, item.id, item.ended];
    for (const turn of item.turns) parts.push(turn.category, turn.kind, codeOf(turn), ...Object.values(turn.panes).flat(Infinity));
    item.hay = parts.join("\n").toLowerCase();
  }
  return item.hay;
}

// Unknown values are negative and match no upper limit.
const compares = (have, sign, limit) => ({ ">": have > limit, "<": have < limit && have >= 0, ">=": have >= limit, "<=": have <= limit && have >= 0 })[sign] ?? have === limit;

// Whether all words match: numbers by their names, such as speedup>1.5, anything else by `holds`; -word excludes.
function matches(words, numbers, holds) {
  return words.toLowerCase().split(/\s+/).filter(Boolean).every(each => {
    const without = each.startsWith("-") && each.length > 1, word = without ? each.slice(1) : each;
    const [, name, sign, limit, unit] = word.match(/^(\w+)(>=|<=|>|<|[=:])([\d.]+)(%|x)?$/) ?? [], value = name && numbers(name);
    return without !== (value === undefined ? holds(word) : compares(value ?? -1, sign, Number(limit) / (unit === "%" ? 100 : 1)));
  });
}

function holds(item, word) {
  const field = word.match(/^(problem|model|category|id|stop):(.*)$/);
  if (field && field[1] === "category") return item.turns.some(turn => [turn.category, look(turn)].includes(field[2]));
  if (field) return String({ problem: item.problem, model: item.model, id: item.id, stop: item.ended }[field[1]]).toLowerCase().includes(field[2]);
  return haystack(item).includes(word.replace(/^text:/, ""));
}

function choose() {
  const numbers = item => ({ speedup: best(item), return: item.returns[0] ?? null, turns: item.turns.length, level: item.level });
  state.shown = DATA.episodes.map((_, n) => n).filter(n => matches(state.words, name => numbers(DATA.episodes[n])[name], word => holds(DATA.episodes[n], word)));
  const value = { best, return: item => item.returns[0] ?? -1, turns: item => item.turns.length }[state.sort];
  if (value) state.shown.sort((a, b) => value(DATA.episodes[b]) - value(DATA.episodes[a]));
  if (state.sort === "problem") state.shown.sort((a, b) => DATA.episodes[a].problem.localeCompare(DATA.episodes[b].problem));
  if (state.shown.length && !state.shown.includes(state.at)) select(state.shown[0]);
}

// ---- the list

const named = item => (item.model || "no model") + (item.sample === null ? "" : `, sample ${item.sample}`);

// Draws and restores the focus. In the table of turns, the focus follows the chosen turn.
function redraw(draw) {
  const id = document.activeElement?.id ?? "";
  draw();
  if (id && document.activeElement?.id !== id) byId(/^turn\d/.test(id) ? `turn${state.turn}` : id)?.focus({ preventScroll: true });
}

function drawList() {
  const rows = state.shown.map(n => {
    const item = DATA.episodes[n], top = best(item), here = n === state.at;
    const dots = item.turns.map(turn => make("span", { class: look(turn), title: `turn ${turn.turn}: ${turn.category}/${turn.kind}` }, turn.mark));
    return make("li", { class: here ? "chosen" : null, "data-at": n }, make("a", { id: `episode${n}`, href: `#${encodeURIComponent(item.id)}/`, "aria-current": here && "true" },
      make("span", { class: "name" }, make("span", {}, item.problem), top >= 0 ? faster(top) : "-"),
      make("span", { class: "more" }, make("span", {}, named(item)), make("span", { class: "dots" }, ...dots))));
  });
  redraw(() => byId("rows").replaceChildren(...(rows.length ? rows : [make("li", { class: "empty" }, "Nothing matches the filter.")])));
  byId("count").textContent = state.words ? `${state.shown.length} of ${DATA.episodes.length}` : `${DATA.episodes.length} ${DATA.episodes.length === 1 ? "trajectory" : "trajectories"}`;
}

function buildFrame() {
  const input = make("input", { id: "search", type: "search", placeholder: "words, speedup>1.5", "aria-label": "Filter", on: { input: event => { state.words = event.target.value; choose(); drawList(); drawView(); } } });
  const sort = make("select", { "aria-label": "Sort", on: { change: event => { state.sort = event.target.value; choose(); drawList(); } } },
    ...["file", "problem", "best", "return", "turns"].map(name => make("option", { value: name }, `by ${name}`)));
  byId("list").append(make("div", { id: "tools" }, input, sort), make("ul", { id: "rows" }));
  byId("top").append(make("h1", {}, make("span", {}, "kevin-env "), DATA.home ? make("a", { href: DATA.home, title: "r" }, "report") : "replay"), make("span", { class: "dim" }, DATA.title, " · ", make("span", { id: "count" })),
    make("button", { on: { click: theme }, title: "t" }, "light / dark"), make("button", { on: { click: help }, title: "?" }, "keys"));
}

// ---- one trajectory

function drawView() {
  const item = episode();
  if (!item) return byId("view").replaceChildren(make("p", { class: "empty" }, "No trajectory."));
  const top = best(item), fastest = item.turns[item.best], facts = [named(item), item.endpoint, item.device || "no device", `${item.turns.length} ${item.turns.length === 1 ? "turn" : "turns"}`, item.ended === "max_turns" ? "all turns played" : item.ended, when(item.created)];
  if (top >= 0) facts.push(make("span", {}, "best ", make("b", { class: top < 1 ? "slow" : "correct" }, times(top)), ` (turn ${fastest.turn}${fastest.interpreted ? ", in Triton's interpreter: its speed means nothing" : look(fastest) === "noisy" ? ", noisy" : ""})${top < 1 && !fastest.interpreted ? ", slower than the reference" : ""}`));
  const children = [make("h2", {}, item.problem), make("p", { class: "facts" }, ...facts.filter(Boolean).flatMap((fact, n) => (n ? ["  ·  ", fact] : [fact])))];
  if (item.turns.length) {
    children.push(charts(item), timeline(item), tabs());
    children.push(make("section", { class: "pane", id: "pane", role: "tabpanel", "aria-labelledby": `tab-${state.pane}` }, ...paint(current(), item)));
  } else children.push(make("p", { class: "empty" }, "No turn has been judged yet."));
  redraw(() => byId("view").replaceChildren(...children));
  const row = document.querySelector("#turns tr.chosen"), box = document.querySelector(".wide");
  if (row && row.offsetTop + row.offsetHeight > box.clientHeight) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  highlight(byId("pane"));
  history.replaceState(null, "", `#${encodeURIComponent(item.id)}/${state.turn + 1}/${state.pane}`);
}

// The date in the time zone of the reader.
function when(created) {
  const date = new Date(created);
  return isNaN(date) ? created : make("time", { datetime: created, title: created }, date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
}

function timeline(item) {
  const head = ["", "turn", "verdict", "speedup", "95 %", "score", "return", "seconds", ""];
  const number = new Set([1, 3, 5, 6, 7]);
  const rows = item.turns.map((turn, n) => make("tr", { id: `turn${n}`, tabindex: 0, class: n === state.turn ? "chosen" : null, "aria-current": n === state.turn && "true", on: { click: () => go(n), keydown: event => event.key === "Enter" && go(n) } },
    ...[make("b", { class: look(turn) }, turn.mark), String(turn.turn), make("span", { class: look(turn) }, `${turn.category}/${turn.kind}`), faster(turn.speedup),
      turn.interval ? `[${turn.interval.map(figure).join(", ")}]` : "", fixed(turn.score), fixed(item.returns[n]), fixed(turn.total, 1), make("span", { title: turn.summary }, turn.summary)]
      .map((cell, column) => make("td", { class: number.has(column) ? "num" : column === 8 ? "last" : column === 4 ? "dim" : null }, cell))));
  return make("div", { class: "wide" }, make("table", { id: "turns" }, make("thead", {}, make("tr", {}, ...head.map((name, n) => make("th", { class: number.has(n) ? "num" : null }, name)))), make("tbody", {}, ...rows)));
}

function tabs() {
  return make("div", { class: "tabs", role: "tablist" }, ...PANES.map((name, n) =>
    make("button", { id: `tab-${name}`, role: "tab", "aria-controls": "pane", "aria-selected": String(name === state.pane), on: { click: () => show(name) } }, make("kbd", {}, String(n + 1)), name)));
}

function code(lines, wrong = [], note = "") {
  const box = make("div", { class: "code" });
  lines.forEach((line, n) => {
    const bad = wrong.includes(n + 1);
    box.append(make("div", { class: bad ? "wrong" : null }, make("i", {}, String(n + 1)), make("span", {}, ...pieces(line))));
    if (bad && n + 1 === wrong[wrong.length - 1]) box.append(make("div", { class: "note" }, make("i", {}, "↳"), note));
  });
  return box;
}
const pieces = line => line.map(([kind, text]) => (kind ? make("span", { class: KINDS[kind] }, text) : text));

// A pane is a list of blocks: their kind, then their parts. The page draws each kind in one way.
const BLOCKS = {
  section: ([title]) => [make("h3", {}, title)],
  prose: ([text, style]) => [make("pre", { class: style ? `prose ${style}` : "prose" }, text)],
  facts: ([pairs]) => [make("table", {}, make("tbody", {}, ...pairs.map(([name, value]) => make("tr", {}, make("th", {}, name), make("td", {}, value)))))],
  code: ([wrong, note], turn) => [make("button", { id: "copy", title: "y", on: { click: copy } }, "copy"), code(turn.lines, wrong, note)],
  log: ([name, text]) => [make("h3", {}, name), make("pre", {}, text)],
};
const paint = (turn, item) => (state.pane === "diff" ? paintDiff(turn, item) : turn.panes[state.pane].flatMap(([kind, ...parts]) => BLOCKS[kind](parts, turn)));

// ---- moving about

function open(n, turn) {
  if (n !== state.at) byId("view").scrollTop = 0;
  select(n);
  if (turn) go(turn - 1);
  else drawView();
  drawList();
  document.querySelector("#rows .chosen")?.scrollIntoView({ block: "nearest" });
}
function select(n) { state.at = n; state.turn = turns().length ? episode().best : 0; }
function go(n) { state.turn = Math.min(Math.max(n, 0), Math.max(turns().length - 1, 0)); drawView(); }
function show(pane) { state.pane = pane; drawView(); }
function step(by) {
  const at = state.shown.indexOf(state.at) + by;
  if (at >= 0 && at < state.shown.length) open(state.shown[at]);
}
function theme() { document.documentElement.classList.toggle("dark"); }
function help() { const box = byId("help"); box.open ? box.close() : box.showModal(); }

// Copies the kernel, or selects it if the clipboard is not available.
async function copy() {
  if (!current()?.lines) return;
  show("kernel");
  try {
    await navigator.clipboard.writeText(codeOf(current()));
    byId("copy").textContent = "copied";
  } catch { getSelection().selectAllChildren(document.querySelector(".code")); }
}

function highlight(box) {
  const word = state.words.toLowerCase().split(/\s+/).find(each => each && !/[:<>=]/.test(each.replace(/^text:/, "")) && !each.startsWith("-"))?.replace(/^text:/, "");
  if (!box || !word) return;
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode() && found.length < 500) if (walker.currentNode.data.toLowerCase().includes(word)) found.push(walker.currentNode);
  for (const node of found) {
    const rest = node.splitText(node.data.toLowerCase().indexOf(word));
    rest.splitText(word.length);
    rest.replaceWith(make("mark", {}, rest.data));
  }
}

const KEYS = { ArrowLeft: () => go(state.turn - 1), h: () => go(state.turn - 1), ArrowRight: () => go(state.turn + 1), l: () => go(state.turn + 1),
  j: () => step(1), "]": () => step(1), k: () => step(-1), "[": () => step(-1), 0: () => go(0), $: () => go(turns().length - 1), b: () => go(episode().best), y: copy, t: theme, "?": help,
  d: nextBase, r: home, "/": () => byId("search").focus(), ...Object.fromEntries(PANES.map((name, n) => [String(n + 1), () => show(name)])) };
const HELP = [["← →  h l", "previous, next turn"], ["j k  [ ]", "next, previous trajectory"], ["0 $ b", "first, last, fastest turn"], ["1 - 6", "panes"], ["d", "diff; again: from the best"], ["y", "copy the kernel"],
  ["/", "filter and search; Esc leaves it"], ...(DATA.home ? [["r", "back to the report"]] : []), ["t", "light or dark"], ["?", "this help"]];
let keys = KEYS, arriving = arrive;

function home() { if (DATA.home) { location.href = DATA.home; arriving(); } }

// Opens the trajectory in the address, #id/turn/pane; by default at its best turn.
function arrive() {
  const [id, turn, pane] = location.hash.slice(1).split("/");
  const at = DATA.episodes.findIndex(item => id === item.id || id === encodeURIComponent(item.id));
  if (at >= 0 && !state.shown.includes(at)) { byId("search").value = state.words = ""; choose(); }
  if (PANES.includes(pane)) state.pane = pane;
  open(at >= 0 ? at : state.at, parseInt(turn, 10));
}

function begin() {
  buildFrame();
  byId("help").append(make("table", {}, ...HELP.map(([key, words]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, words)))), make("button", { on: { click: help } }, "close"));
  if (matchMedia("(prefers-color-scheme: dark)").matches) theme();
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && event.target.type === "search") return event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT/.test(event.target.tagName) || (byId("help").open && event.key !== "?")) return;
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  addEventListener("hashchange", () => arriving());
  arriving();
}
