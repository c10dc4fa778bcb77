// ---- the table of problems: sorted by any column, filtered by words and by numbers

const order = { by: null, down: false, words: "" };
const plural = (count, one, more) => `${many(count)} ${count === 1 ? one : more}`;
const many = value => (value === null ? "" : value.toLocaleString("en"));

// Name, value and format of each column; columns without any value are hidden.
const speedOf = each => each.numbers.speed[RUN.baseline];
const COLUMNS = [
  ["problem", each => each.numbers.problem],
  ["level", each => each.numbers.level, value => (value === null ? "" : String(value))],
  ["samples", each => each.numbers.samples, many],
  ["correct", each => each.numbers.correct, percent],
  ["best", each => speedOf(each)?.best ?? null, faster],
  ["mean", each => speedOf(each)?.avg ?? null, faster],
  ["fast_1", each => speedOf(each)?.fast["1"] ?? null, value => (value === null ? "" : percent(value))],
  ["roofline", each => each.roofline, value => (value === null ? "" : percent(value))],
  ["hacks", each => each.numbers.hack_rate, percent],
  ["turns", each => each.numbers.turns, many],
  ["score", each => each.numbers.score, value => fixed(value)],
  ["tokens", ({ numbers: { totals } }) => (totals.prompt_tokens ?? 0) + (totals.completion_tokens ?? 0) || null, value => (value === null ? "" : roughly(value))],
  ["cost", each => each.numbers.totals.cost, value => fixed(value, 4)],
  ["seconds", each => each.numbers.totals.device_seconds, value => fixed(value, 1)],
].filter(([, value]) => RUN.problems.some(each => value(each) !== null));

const address = (place, turn = 1) => `${place.page}#${encodeURIComponent(place.id)}/${turn}/kernel`;
const called = line => (line.sample === null ? line.place.id : `sample ${line.sample}`);

function holdsProblem(each, word) {
  const mark = Object.entries(DATA.looks).find(([, category]) => word === `category:${category}`);
  if (mark) return each.lines.some(line => line.marks.includes(mark[0]));
  return each.numbers.problem.toLowerCase().includes(word) || each.lines.some(line => line.place.id.toLowerCase().includes(word));
}

function problemRows() {
  const found = RUN.problems.filter(each => matches(order.words, name => COLUMNS.find(column => column[0] === name)?.[1](each), word => holdsProblem(each, word)));
  if (!order.by) return found;
  const value = COLUMNS.find(([name]) => name === order.by)[1], sign = order.down ? -1 : 1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  // Unknown values are last in either order.
  return found.sort((a, b) => { const x = value(a), y = value(b); return x === null || y === null ? (x === null) - (y === null) : sign * compare(x, y); });
}

function sortBy(name) {
  order.down = order.by === name ? !order.down : name !== "problem" && name !== "level";
  order.by = name;
  drawProblems();
}

function nextColumn() {
  const at = COLUMNS.findIndex(([name]) => name === order.by);
  sortBy(COLUMNS[(at + 1) % COLUMNS.length][0]);
}

function lineLink(line) {
  const words = [called(line), line.best ? `${times(line.best)} in turn ${line.best_turn}` : "no timed kernel", line.stop, line.counts ? null : "not a sample: continued or replaced by others"];
  const marks = [...line.marks].map(mark => make("span", { class: DATA.looks[mark] }, mark));
  return make("a", { class: line.counts ? "line" : "line aside", href: address(line.place, line.best_turn ?? 1), title: words.filter(Boolean).join("\n"), "aria-label": words.filter(Boolean).join(", ") }, ...(marks.length ? marks : ["-"]));
}

function problemRow(each) {
  const cells = COLUMNS.map(([name, value, write]) => (name === "problem"
    ? make("th", { scope: "row" }, make("a", { class: "link", href: address(each.top.place, each.top.best_turn ?? 1), title: value(each) }, value(each)))
    : make("td", { class: "num" }, write(value(each)))));
  const more = each.more ? each.pages.map((page, n) => make("a", { class: "rest", href: page }, n ? `page ${n + 1}` : `and ${many(each.more)} more: page 1`)) : [];
  return make("tr", {}, ...cells, make("td", { class: "lines" }, make("div", {}, ...each.lines.map(lineLink), ...more)));
}

function drawProblems() {
  const found = problemRows();
  const head = COLUMNS.map(([name]) => make("th", { class: name === "problem" ? null : "num", "aria-sort": order.by === name ? (order.down ? "descending" : "ascending") : null },
    make("button", { on: { click: () => { sortBy(name); document.querySelector(`#problems button[data-by="${name}"]`).focus(); } }, "data-by": name }, name, make("i", {}, order.by === name ? (order.down ? " ▼" : " ▲") : ""))));
  const body = found.length ? found.map(each => (each.row ??= problemRow(each))) : [make("tr", {}, make("td", { class: "empty", colspan: COLUMNS.length + 1 }, "No problem matches the filter."))];
  byId("problems").replaceChildren(make("thead", {}, make("tr", {}, ...head, make("th", {}, "trajectories, one mark per turn"))), make("tbody", {}, ...body));
  byId("found").textContent = found.length === RUN.problems.length ? `${found.length}` : `${found.length} of ${RUN.problems.length}`;
}

function problemsPart() {
  const filter = make("input", { id: "filter", type: "search", placeholder: "filter: words, best>1.5 correct<50% ...", "aria-label": "Filter problems", on: { input: event => { order.words = event.target.value; drawProblems(); } } });
  const marks = Object.entries(DATA.looks).map(([mark, category]) => make("span", { class: "entry" }, make("span", { class: category }, `${mark} `), category));
  return make("section", {}, make("h3", {}, `Problems, speedup over ${RUN.against[RUN.baseline]} `, make("span", { class: "dim", id: "found" })),
    make("p", { class: "sieve" }, filter, make("span", { class: "dim marks" }, ...marks)), make("div", { class: "across" }, make("table", { id: "problems" })));
}
