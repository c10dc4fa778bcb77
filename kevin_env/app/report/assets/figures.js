// ---- charts of a run: lines with bands, and bars

const RUN = DATA.report;
const PW = 340, PH = 170, PLEFT = 42, PRIGHT = 10, PTOP = 10, PBOTTOM = 24;
const COLOURS = ["", "second", "third", "fourth"];
const percent = value => `${(100 * value).toFixed(1)}%`;
const roughly = value => value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
const plainly = value => (value >= 10000 ? roughly(value) : value.toFixed(2));
const speed = value => `${plainly(value)}x`;

// A figure with its interval as text.
function spoken(figure, say) {
  if (!figure) return "unknown";
  return say(figure.value) + (figure.low === null ? "" : ` [${say(figure.low)}, ${say(figure.high)}]`);
}

const legend = series => series.map(({ name }, n) => make("span", { class: "entry" }, make("span", { class: `legend ${COLOURS[n] || "first"}` }), name));
const chart = (title, series, drawing) => make("figure", {}, make("figcaption", {}, make("b", {}, title), ...(series.length > 1 ? legend(series) : [])), drawing);

// A scale from 0 to at least `most` in a few round steps.
function scale(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), step = power * [1, 2, 2.5, 5, 10].find(each => each * power >= rough * 0.999);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, n) => n * step);
}

// The frame of a chart: names at the bottom, the scale at the left, and a tooltip per column.
function plane({ names, most, say, told, label, at1 }) {
  const ticks = scale(most), top = ticks[ticks.length - 1], step = (PW - PLEFT - PRIGHT) / names.length;
  const x = at => PLEFT + step * (at + 0.5), y = value => PH - PBOTTOM - (value / top) * (PH - PBOTTOM - PTOP);
  const grid = ticks.flatMap(value => [make("line", { class: "axis", x1: PLEFT, x2: PW - PRIGHT, y1: y(value), y2: y(value) }),
    make("text", { x: PLEFT - 5, y: y(value) + 4, "text-anchor": "end" }, say(value))]);
  if (at1) grid.push(make("line", { class: "one", x1: PLEFT, x2: PW - PRIGHT, y1: y(1), y2: y(1) }));
  const every = Math.ceil(names.length * Math.max(...names.map(name => name.length), 2) / 42);
  const below = names.map((name, at) => (at % every ? null : make("text", { x: x(at), y: PH - 8, "text-anchor": "middle" }, name)));
  const hits = told.map((words, at) => make("rect", { class: "hit", x: PLEFT + step * at, y: PTOP, width: step, height: PH - PTOP }, make("title", {}, words)));
  return { x, y, step, svg: (...parts) => make("svg", { viewBox: `0 0 ${PW} ${PH}`, role: "img", "aria-label": label }, ...grid, ...below, ...parts, ...hits) };
}

const heights = series => series.flatMap(({ points }) => points).filter(Boolean).flatMap(point => [point.value, point.high ?? 0]);
const telling = (names, series, say, what) => names.map((name, at) => [`${what} ${name}`, ...series.map(each => `${each.name}: ${spoken(each.points[at], say)}`)].join("\n"));

// Lines, whose points may be missing, with their intervals as bands.
function lines(title, names, series, { say, most = 0, what, at1 = false }) {
  const { x, y, svg } = plane({ names, say: short(say), at1, label: title, most: Math.max(most, ...heights(series)) || 1, told: telling(names, series, say, what) });
  const parts = [];
  series.forEach(({ points }, n) => {
    const kind = COLOURS[n], known = points.map((point, at) => [point, at]).filter(([point]) => point);
    const wide = known.filter(([point]) => point.low !== null);
    if (wide.length > 1) parts.push(make("path", { class: `band ${kind}`, d: `M${[...wide.map(([point, at]) => [x(at), y(point.high)]), ...wide.reverse().map(([point, at]) => [x(at), y(point.low)])].map(place => place.join(" ")).join("L")}Z` }));
    else for (const [point, at] of wide) parts.push(make("line", { class: `whisker ${kind}`, x1: x(at), x2: x(at), y1: y(point.low), y2: y(point.high) }));
    const places = known.map(([point, at]) => [x(at), y(point.value)]);
    if (places.length) parts.push(curve(places, kind), ...places.map(place => dot(place, kind)));
  });
  return chart(title, series, svg(...parts));
}

// Bars side by side, with their intervals as whiskers.
function bars(title, names, series, { say, most = 0, what }) {
  const { x, y, step, svg } = plane({ names, say: short(say), label: title, most: Math.max(most, ...heights(series)) || 1, told: telling(names, series, say, what) });
  const width = Math.min((step * 0.8) / series.length, 30), parts = [];
  series.forEach(({ points }, n) => points.forEach((point, at) => {
    if (!point) return;
    const left = x(at) + width * (n - series.length / 2);
    parts.push(make("rect", { class: `bar ${COLOURS[n]}`, x: left, y: y(point.value), width: width - 1, height: y(0) - y(point.value) }));
    if (point.low !== null) parts.push(make("line", { class: "whisker dark", x1: left + width / 2, x2: left + width / 2, y1: y(point.low), y2: y(point.high) }));
  }));
  return chart(title, series, svg(...parts));
}

const short = say => value => (say === percent ? `${Math.round(100 * value)}%` : (value >= 10000 ? roughly(value) : String(Number(value.toPrecision(3)))) + (say === speed ? "x" : ""));

function distribution() {
  const all = RUN.bins.reduce((sum, bin) => sum + bin.count, 0);
  const names = RUN.bins.map(bin => (bin.low === null ? "none" : String(bin.low)));
  const told = RUN.bins.map(bin => `${bin.low === null ? "no timed kernel" : bin.high === null ? `at least ${bin.low}x` : `${bin.low}x to ${bin.high}x`}\n${bin.count} of ${all} trajectories`);
  const { x, y, step, svg } = plane({ names, told, say: value => (Number.isInteger(value) ? String(value) : ""), label: "trajectories by speedup", most: Math.max(...RUN.bins.map(bin => bin.count), 1) });
  const width = Math.min(step * 0.84, 40), parts = RUN.bins.map((bin, at) => make("rect", { class: `bar ${bin.low === null ? "none" : bin.low >= 1 ? "fast" : "slow"}`, x: x(at) - width / 2, y: y(bin.count), width, height: y(0) - y(bin.count) }));
  return chart(`Trajectories by speedup over ${AGAINST[RUN.baseline]}`, [], svg(...parts));
}

const AGAINST = { eager: "eager", compile: "torch.compile" };

function runCharts() {
  const { overall, levels, baseline } = RUN, of = turn => turn.speed[baseline], by = turn => turn.best_speed[baseline];
  const ks = Object.keys(overall.correct.best), turns = overall.by_turn, numbers = turns.map(turn => String(turn.turn)), names = Object.keys(levels), several = ks.length > 1;
  const rate = name => ({ name, points: turns.map(turn => turn.rates[name]) });
  const level = (name, pick) => ({ name, points: names.map(each => pick(levels[each])) });
  return make("div", { class: "charts" },
    several ? lines("pass@k: share with a correct kernel in k trajectories", ks, [{ name: "pass@k", points: ks.map(k => overall.correct.best[k]) }], { say: percent, most: 1, what: "k =" }) : null,
    several ? lines("best@k: largest speedup of k trajectories", ks, Object.entries(overall.speed).map(([name, each]) => ({ name: AGAINST[name], points: ks.map(k => each.speedup.best[k]) })), { say: speed, what: "k =", at1: true }) : null,
    distribution(),
    RUN.roofline ? rooflineChart() : null,
    names.length ? bars("Levels", names, [level("correct", each => each.correct.avg), level("fast_1", each => each.speed[baseline]?.fast["1"].avg)], { say: percent, most: 1, what: "level" }) : null,
    lines("Turns: shares", numbers, [rate("compile"), rate("correct"), { name: "correct so far", points: turns.map(turn => turn.best_correct) }, rate("hack")], { say: percent, most: 1, what: "turn" }),
    lines("Turns: speedup, 0 if incorrect", numbers, [{ name: "this turn", points: turns.map(turn => of(turn)?.speedup) }, { name: "best so far", points: turns.map(turn => by(turn)?.speedup) }], { say: speed, what: "turn", at1: true }),
    lines("Turns: fast_1", numbers, [{ name: "this turn", points: turns.map(turn => of(turn)?.fast["1"]) }, { name: "best so far", points: turns.map(turn => by(turn)?.fast["1"]) }], { say: percent, most: 1, what: "turn" }),
    lines("Turns: score and return", numbers, [{ name: "score", points: turns.map(turn => turn.score) }, { name: "return", points: turns.map(turn => turn.discounted_return) }], { say: plainly, what: "turn" }));
}
