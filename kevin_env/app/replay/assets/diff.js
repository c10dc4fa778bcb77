// ---- the diff of two kernels

function baseTurn(turn, item) {
  const earlier = item.turns.slice(0, state.turn).filter(each => each.lines !== null);
  if (state.base === "best") return earlier.filter(each => each.speedup !== null).sort((a, b) => b.speedup - a.speedup)[0];
  return state.base === "previous" ? earlier[earlier.length - 1] : item.turns.find(each => each.turn === state.base);
}

function nextBase() {
  if (state.pane === "diff") state.base = state.base === "previous" ? "best" : "previous";
  show("diff");
}

function paintDiff(turn, item) {
  const options = ["previous", "best", ...item.turns.map(each => each.turn)];
  const chooser = make("select", { id: "base", "aria-label": "Compare with", on: { change: event => { state.base = Number(event.target.value) || event.target.value; drawView(); } } },
    ...options.map(name => make("option", { value: name, selected: name === state.base }, typeof name === "number" ? `turn ${name}` : name)));
  const from = baseTurn(turn, item), line = make("p", {}, "from ", chooser);
  if (!from || from.lines === null || turn.lines === null) return [line, make("p", { class: "empty" }, "Nothing to compare.")];
  const lines = diff(codeOf(from).split("\n"), codeOf(turn).split("\n"));
  const added = lines.filter(each => each[0] === "+").length, removed = lines.filter(each => each[0] === "-").length;
  line.append(` (turn ${from.turn}, ${`${from.category} ${times(from.speedup)}`.trim()}) to turn ${turn.turn}   `, make("span", { class: "correct" }, `+${added} `), make("span", { class: "compile" }, `-${removed}`));
  if (!added && !removed) return [line, make("p", { class: "empty" }, "No differences.")];
  markWords(lines);
  const box = make("div", { class: "code" }), shown = near(lines);
  for (const each of shown) {
    if (each[0] === "gap") { box.append(make("div", { class: "gap" }, make("i", {}, "⋯"), `${each[1]} equal lines`)); continue; }
    const [sign, old, now, , spans] = each;
    const line = sign === "-" ? from.lines[old - 1] : turn.lines[now - 1];
    const body = marked(line || [], spans || []);
    box.append(make("div", { class: { "+": "add", "-": "del" }[sign] }, make("i", {}, old ? String(old) : ""), make("i", {}, now ? String(now) : ""), make("span", {}, `${sign} `, ...body)));
  }
  return [line, box];
}

// The longest common subsequence, between the equal lines at both ends; rows are [sign, old number, new number, text].
function diff(a, b) {
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const n = a.length - start - end, m = b.length - start - end, rows = [];
  for (let i = 0; i < start; i++) rows.push([" ", i + 1, i + 1, a[i]]);
  const tooMuch = n * m > 9e6, width = m + 1, common = tooMuch ? null : new Uint32Array((n + 1) * width);
  if (common) for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--)
    common[i * width + j] = a[start + i] === b[start + j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
  let i = 0, j = 0;
  while (i < n || j < m) {
    const x = start + i, y = start + j;
    if (common && i < n && j < m && a[x] === b[y]) { rows.push([" ", x + 1, y + 1, a[x]]); i++; j++; }
    else if (i < n && (j >= m || !common || common[(i + 1) * width + j] >= common[i * width + j + 1])) { rows.push(["-", x + 1, 0, a[x]]); i++; }
    else { rows.push(["+", 0, y + 1, b[y]]); j++; }
  }
  for (let k = 0; k < end; k++) rows.push([" ", a.length - end + k + 1, b.length - end + k + 1, a[a.length - end + k]]);
  return rows;
}

// Lines that replace each other are compared word by word: rows get the [start, end] of what changed as a fifth entry.
function markWords(rows) {
  let removed = [], added = [];
  for (const row of [...rows, [" "]]) {
    if (row[0] === "-") removed.push(row);
    else if (row[0] === "+") added.push(row);
    else {
      removed.slice(0, added.length).forEach((old, n) => [old[4], added[n][4]] = within(old[3], added[n][3]));
      removed = []; added = [];
    }
  }
}

// Where two lines differ; nowhere when they are not alike.
function within(a, b) {
  const words = text => text.match(/\w+|\s+|[^\w\s]/gu) || [], x = words(a), y = words(b), went = [], came = [];
  if (Math.max(x.length, y.length) > 400) return [[], []];
  const rows = diff(x, y), solid = list => list.filter(word => word.trim()).length;
  if (2 * solid(rows.filter(row => row[0] === " ").map(row => row[3])) < 0.4 * (solid(x) + solid(y))) return [[], []];
  let i = 0, j = 0;
  for (const [sign, , , word] of rows) {
    if (sign === "-") went.push([i, i + word.length]);
    if (sign === "+") came.push([j, j + word.length]);
    if (sign !== "+") i += word.length;
    if (sign !== "-") j += word.length;
  }
  return [went, came];
}

// The highlighted pieces of a line, with its changes marked.
function marked(line, spans) {
  const done = [];
  let at = 0;
  for (const [kind, text] of line) {
    const cuts = [0, text.length, ...spans.flat().map(each => each - at).filter(each => each > 0 && each < text.length)].sort((a, b) => a - b);
    for (let n = 1; n < cuts.length; n++) {
      const piece = pieces([[kind, text.slice(cuts[n - 1], cuts[n])]]), middle = at + cuts[n - 1];
      done.push(spans.some(([start, end]) => start <= middle && middle < end) ? make("mark", { class: "word" }, ...piece) : piece[0]);
    }
    at += text.length;
  }
  return done;
}

// Keeps three equal lines around each change.
function near(rows) {
  const keep = new Uint8Array(rows.length);
  rows.forEach((row, n) => { if (row[0] !== " ") keep.fill(1, Math.max(n - 3, 0), n + 4); });
  const shown = [];
  let gap = 0;
  rows.forEach((row, n) => {
    if (!keep[n]) { gap++; return; }
    if (gap) shown.push(["gap", gap]);
    gap = 0;
    shown.push(row);
  });
  if (gap) shown.push(["gap", gap]);
  return shown;
}
