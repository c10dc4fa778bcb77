// ---- charts, a column a turn; a click on a column chooses the turn

const W = 320, H = 130, LEFT = 34, BOTTOM = 20, TOP = 8;

function charts(item) {
  return make("div", { class: "charts" }, figure("speedup by turn, with its 95 % interval", speedupChart(item)),
    figure("score (bars) and return (line)", scoreChart(item)), figure(["seconds", ...STAGES.flatMap((name, n) => [make("span", { class: `legend s${n}` }), name])], stagesChart(item)));
}

const figure = (words, drawing) => make("figure", {}, make("figcaption", {}, ...[words].flat()), drawing);

// The frame of a chart: columns to click, axes, and the two scales.
function frame(item, most) {
  const n = item.turns.length, step = (W - LEFT) / n, y = value => H - BOTTOM - (value / most) * (H - BOTTOM - TOP), x = at => LEFT + step * (at + 0.5);
  const hits = item.turns.map((turn, at) => make("rect", { class: at === state.turn ? "hit chosen" : "hit", x: LEFT + step * at, y: TOP, width: step, height: H - TOP, on: { click: () => go(at) } }));
  const every = Math.ceil(n / 14);
  const names = item.turns.map((turn, at) => (at % every ? null : make("text", { x: x(at), y: H - 6, "text-anchor": "middle" }, String(turn.turn))));
  const sides = [0, most].map(value => make("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, value >= 100 ? value.toFixed(0) : value ? value.toPrecision(2) : "0"));
  const axis = make("line", { class: "axis", x1: LEFT, x2: W, y1: H - BOTTOM, y2: H - BOTTOM });
  return { x, y, step, svg: (...parts) => make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" }, ...hits, axis, ...sides, ...names, ...parts) };
}

const curve = (points, kind = "") => make("path", { class: `curve ${kind}`, d: points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") });
const dot = ([x, y], kind = "") => make("circle", { class: `point ${kind}`, cx: x, cy: y, r: 3 });

function speedupChart(item) {
  const most = Math.max(1.2, ...item.turns.map(turn => turn.interval?.[1] ?? turn.speedup ?? 0));
  const { x, y, svg } = frame(item, most);
  const points = [], extra = [make("line", { class: "one", x1: LEFT, x2: W, y1: y(1), y2: y(1) })];
  item.turns.forEach((turn, at) => {
    if (turn.speedup === null) { extra.push(make("text", { class: `fail ${turn.category}`, x: x(at), y: H - BOTTOM - 5 }, turn.mark)); return; }
    points.push([x(at), y(turn.speedup)]);
    if (turn.interval) extra.push(make("line", { class: "whisker", x1: x(at), x2: x(at), y1: y(turn.interval[0]), y2: y(turn.interval[1]) }));
  });
  return svg(...extra, points.length ? curve(points) : null, ...points.map(point => dot(point)));
}

function scoreChart(item) {
  const most = Math.max(0.5, ...item.turns.map(turn => turn.score), ...item.returns);
  const { x, y, step, svg } = frame(item, most), width = Math.min(step * 0.5, 26);
  const bars = item.turns.map((turn, at) => (turn.score > 0 ? make("rect", { class: "bar", x: x(at) - width / 2, y: y(turn.score), width, height: y(0) - y(turn.score) }) : null));
  const points = item.returns.map((value, at) => [x(at), y(Math.max(value, 0))]);
  return svg(...bars, curve(points, "second"), ...points.map(point => dot(point, "second")));
}

function stagesChart(item) {
  const most = Math.max(0.1, ...item.turns.map(turn => turn.total));
  const { x, y, step, svg } = frame(item, most), width = Math.min(step * 0.6, 30), parts = [];
  item.turns.forEach((turn, at) => {
    let below = 0;
    turn.seconds.forEach((value, stage) => {
      if (value > 0) parts.push(make("rect", { class: `s${stage}`, x: x(at) - width / 2, y: y(below + value), width, height: y(below) - y(below + value) }));
      below += value;
    });
  });
  return svg(...parts);
}
