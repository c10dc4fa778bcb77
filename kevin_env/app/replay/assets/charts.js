// ---- charts: a column per turn, level or k, with its values as a tooltip

const W = 340, H = 160, LEFT = 42, RIGHT = 10, TOP = 10, BOTTOM = 24;
const SERIES = ["first", "second", "third", "fourth"];
const percent = value => `${(100 * value).toFixed(1)}%`;
const roughly = value => value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
const plainly = value => (value >= 10000 ? roughly(value) : figure(value));
const speed = value => `${plainly(value)}x`;
const short = say => value => (say === percent ? `${Math.round(100 * value)}%` : (value >= 10000 ? roughly(value) : String(Number(value.toPrecision(3)))) + (say === speed ? "x" : ""));

// A legend entry, never broken between swatch and label. The swatch of a curve is a piece of the curve.
const entry = (name, swatch) => make("span", { class: "entry" }, swatch, name);
const swatch = kind => make("span", { class: `swatch ${kind}` });
const stroke = kind => make("svg", { class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true" }, make("path", { class: `curve ${kind}`, d: "M0 4H22" }));
const chart = (title, entries, drawing) => make("figure", {}, make("figcaption", {}, make("b", {}, title), ...entries), drawing);

// Ticks in round steps from 0 to at least `most`.
function scale(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), step = power * [1, 2, 2.5, 5, 10].find(each => each * power >= rough * 0.999);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, n) => n * step);
}

// The frame of a chart: names below, the scale at the left, and a tooltip per column. A click on a column calls `pick`.
function plane({ title, names, tooltips, most, say, at1, chosen, pick }) {
  const ticks = scale(most), top = ticks[ticks.length - 1], step = (W - LEFT - RIGHT) / names.length;
  const x = at => LEFT + step * (at + 0.5), y = value => H - BOTTOM - (value / top) * (H - BOTTOM - TOP);
  const across = (kind, value) => make("line", { class: kind, x1: LEFT, x2: W - RIGHT, y1: y(value), y2: y(value) });
  const grid = ticks.flatMap(value => [across("axis", value), make("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, say(value))]);
  const every = Math.ceil((names.length * Math.max(...names.map(name => name.length), 2)) / 42);
  const below = names.map((name, at) => (at % every ? null : make("text", { x: x(at), y: H - 8, "text-anchor": "middle" }, name)));
  const column = (kind, at, ...inside) => make("rect", { class: kind, x: LEFT + step * at, y: TOP, width: step, height: H - TOP, on: { click: () => pick?.(at) } }, ...inside);
  const hits = tooltips.map((words, at) => column(pick ? "hit pick" : "hit", at, make("title", {}, words)));
  const label = `${title}. ${tooltips.map(words => words.replaceAll("\n", ", ")).join("; ")}`;
  return { x, y, step, svg: (...parts) => make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    chosen === undefined ? null : column("chosen", chosen), ...grid, at1 && top >= 1 ? across("one", 1) : null, ...below, ...parts, ...hits) };
}

const curve = (points, kind = "first") => make("path", { class: `curve ${kind}`, d: points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") });
const dot = ([cx, cy], kind = "first", r = 3) => make("circle", { class: `point ${kind}`, cx, cy, r });
const upright = (kind, x, [low, high], y) => make("line", { class: `whisker ${kind}`, x1: x, x2: x, y1: y(low), y2: y(high) });

// ---- the charts of an episode, without those that would be empty

function charts(item) {
  const common = { names: item.turns.map(turn => String(turn.turn)), chosen: state.turn, pick: go };
  return make("div", { class: "charts" }, ...[speedupChart, scoreChart, stagesChart].map(draw => draw(item, common)));
}

const telling = (item, words) => item.turns.map((turn, at) => `turn ${turn.turn}: ${words(turn, at)}`);
const range = turn => (turn.interval ? ` [${turn.interval.map(speed).join(", ")}]` : "");

function speedupChart(item, common) {
  if (item.turns[item.best].speedup === null) return null;
  const title = "speedup, 95 % interval", tooltips = telling(item, turn => `${turn.category}/${turn.kind} ${times(turn.speedup)}${range(turn)}`.trim());
  const { x, y, svg } = plane({ ...common, title, tooltips, say: short(speed), at1: true, most: Math.max(1.2, ...item.turns.map(turn => turn.interval?.[1] ?? turn.speedup ?? 0)) });
  const timed = item.turns.map((turn, at) => [turn, x(at)]).filter(([turn]) => turn.speedup !== null);
  const failed = item.turns.map((turn, at) => (turn.speedup === null ? make("text", { class: `fail ${look(turn)}`, x: x(at), y: H - BOTTOM - 5 }, turn.mark) : null));
  const points = timed.map(([turn, at]) => [at, y(turn.speedup)]);
  return chart(title, [], svg(...failed, ...timed.map(([turn, at]) => turn.interval && upright("", at, turn.interval, y)), curve(points), ...points.map((point, n) => dot(point, look(timed[n][0]) === "noisy" ? "hollow" : "first"))));
}

function scoreChart(item, common) {
  const most = Math.max(...item.turns.map(turn => turn.score), ...item.returns), tooltips = telling(item, (turn, at) => `score ${fixed(turn.score)}, return ${fixed(item.returns[at])}`);
  if (most <= 0) return null;
  const { x, y, step, svg } = plane({ ...common, title: "score and return", tooltips, say: short(plainly), most }), width = Math.min(step * 0.5, 26);
  const bars = item.turns.map((turn, at) => (turn.score > 0 ? make("rect", { class: "bar", x: x(at) - width / 2, y: y(turn.score), width, height: y(0) - y(turn.score) }) : null));
  const points = item.returns.map((value, at) => [x(at), y(Math.max(value, 0))]);
  return chart("", [entry("score", swatch("first")), entry("return", stroke("second"))], svg(...bars, curve(points, "second"), ...points.map(point => dot(point, "second"))));
}

function stagesChart(item, common) {
  const most = Math.max(...item.turns.map(turn => turn.total)), tooltips = telling(item, turn => STAGES.map((name, n) => `${name} ${fixed(turn.seconds[n], 1)} s`).join(", "));
  if (most <= 0) return null;
  const { x, y, step, svg } = plane({ ...common, title: "seconds", tooltips, say: short(plainly), most }), width = Math.min(step * 0.6, 30);
  const parts = item.turns.flatMap((turn, at) => {
    let below = 0;
    return turn.seconds.map((value, stage) => make("rect", { class: `s${stage}`, x: x(at) - width / 2, y: y(below += value), width, height: y(0) - y(value) }));
  });
  return chart("seconds", STAGES.map((name, n) => entry(name, swatch(`s${n}`))), svg(...parts));
}
