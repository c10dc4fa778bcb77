// ---- the charts of a run, without those that are 0 everywhere

const RUN = DATA.report;

// A value with its interval as text.
function spoken(figure, say) {
  if (!figure) return "unknown";
  return say(figure.value) + (figure.low === null ? "" : ` [${say(figure.low)}, ${say(figure.high)}]`);
}

// The series that are not 0 everywhere, each with its color.
const shown = all => all.map((each, n) => ({ ...each, kind: SERIES[n] })).filter(({ points }) => points.some(point => point && (point.value || point.high)));
const legend = (series, sample) => (series.length > 1 ? series.map(({ name, kind }) => entry(name, sample(kind))) : []);
const heights = series => series.flatMap(({ points }) => points).filter(Boolean).flatMap(point => [point.value, point.high ?? 0]);
const figures = (names, series, say, what) => names.map((name, at) => [`${what} ${name}`, ...series.map(each => `${each.name}: ${spoken(each.points[at], say)}`)].join("\n"));

// A chart of series; `draw` makes the parts of each.
function plot(title, names, all, { say, most = 0, what, at1 }, sample, draw) {
  const series = shown(all);
  if (!series.length) return null;
  const frame = plane({ title, names, at1, say: short(say), most: Math.max(most, ...heights(series)), tooltips: figures(names, series, say, what) });
  return chart(title, legend(series, sample), frame.svg(...series.flatMap((each, n) => draw(each, series.slice(n + 1), frame, series.length))));
}

// Whether another line covers a segment of this one.
const covered = (points, over) => over.some(other => points.filter((point, at) => point && point.value === other.points[at]?.value).length >= Math.min(points.length, 2));

// Lines with their intervals as bands; points may be missing. A line that another one covers is drawn broader.
function lines(title, names, series, options) {
  return plot(title, names, series, options, stroke, ({ points, kind }, over, { x, y }) => {
    const under = covered(points, over), known = points.map((point, at) => [point, at]).filter(([point]) => point), wide = known.filter(([point]) => point.low !== null);
    const edge = side => wide.map(([point, at]) => `${x(at)} ${y(point[side])}`), places = known.map(([point, at]) => [x(at), y(point.value)]);
    const around = wide.length > 1 ? [make("path", { class: `band ${kind}`, d: `M${[...edge("high"), ...edge("low").reverse()].join("L")}Z` })] : wide.map(([point, at]) => upright(kind, x(at), [point.low, point.high], y));
    return [...around, ...(places.length ? [curve(places, under ? `${kind} under` : kind)] : []), ...places.map(place => dot(place, kind, under ? 4.5 : 3))];
  });
}

// Bars side by side, with their intervals as whiskers.
function bars(title, names, series, options) {
  return plot(title, names, series, options, swatch, ({ points, kind }, over, { x, y, step }, count) => points.flatMap((point, at) => {
    if (!point) return [];
    const width = Math.min((step * 0.8) / count, 30), left = x(at) + width * (count / 2 - over.length - 1);
    return [make("rect", { class: `bar ${kind}`, x: left, y: y(point.value), width: width - 1, height: y(0) - y(point.value) }), point.low === null ? null : upright("dark", left + width / 2, [point.low, point.high], y)];
  }));
}

function distribution() {
  const all = RUN.bins.reduce((sum, bin) => sum + bin.count, 0);
  const names = RUN.bins.map(bin => (bin.low === null ? "none" : `${bin.low}x`));
  const tooltips = RUN.bins.map(bin => `${bin.low === null ? "no timed kernel" : bin.high === null ? `at least ${bin.low}x` : `${bin.low}x to ${bin.high}x`}\n${bin.count} of ${all} trajectories`);
  const title = `Trajectories by speedup over ${RUN.against[RUN.baseline]}`, kind = bin => (bin.low === null ? "none" : bin.low >= 1 ? "fast" : "slower");
  const { x, y, step, svg } = plane({ title, names, tooltips, say: value => (Number.isInteger(value) ? String(value) : ""), most: Math.max(...RUN.bins.map(bin => bin.count)) });
  const width = Math.min(step * 0.84, 40), parts = RUN.bins.map((bin, at) => make("rect", { class: `bar ${kind(bin)}`, x: x(at) - width / 2, y: y(bin.count), width, height: y(0) - y(bin.count) }));
  const words = { none: "no timed kernel", slower: "slower", fast: "at least as fast" }, found = new Set(RUN.bins.filter(bin => bin.count).map(kind));
  return chart(title, [...found].map(each => entry(words[each], swatch(each))), svg(...parts));
}

function runCharts() {
  const { overall, levels, baseline } = RUN, of = turn => turn.speed[baseline], by = turn => turn.best_speed[baseline];
  const ks = Object.keys(overall.correct.best), turns = overall.by_turn, numbers = turns.map(turn => String(turn.turn)), names = Object.keys(levels), several = ks.length > 1;
  const rate = name => ({ name, points: turns.map(turn => turn.rates[name]) });
  const level = (name, pick) => ({ name, points: names.map(each => pick(levels[each])) });
  const drawn = [
    several ? lines("pass@k: share with a correct kernel in k trajectories", ks, [{ name: "pass@k", points: ks.map(k => overall.correct.best[k]) }], { say: percent, most: 1, what: "k =" }) : null,
    several ? lines("best@k: largest speedup of k trajectories", ks, Object.entries(overall.speed).map(([name, each]) => ({ name: RUN.against[name], points: ks.map(k => each.speedup.best[k]) })), { say: speed, what: "k =", at1: true }) : null,
    distribution(),
    RUN.roofline.length ? rooflineChart() : null,
    names.length ? bars("Levels", names, [level("correct", each => each.correct.avg), level("fast_1", each => each.speed[baseline]?.fast["1"].avg)], { say: percent, most: 1, what: "level" }) : null,
    lines("Turns: shares", numbers, [rate("compile"), rate("correct"), { name: "correct so far", points: turns.map(turn => turn.best_correct) }, rate("hack")], { say: percent, most: 1, what: "turn" }),
    lines("Turns: speedup, 0 if incorrect", numbers, [{ name: "this turn", points: turns.map(turn => of(turn)?.speedup) }, { name: "best so far", points: turns.map(turn => by(turn)?.speedup) }], { say: speed, what: "turn", at1: true }),
    lines("Turns: fast_1", numbers, [{ name: "this turn", points: turns.map(turn => of(turn)?.fast["1"]) }, { name: "best so far", points: turns.map(turn => by(turn)?.fast["1"]) }], { say: percent, most: 1, what: "turn" }),
    lines("Turns: score and return", numbers, [{ name: "score", points: turns.map(turn => turn.score) }, { name: "return", points: turns.map(turn => turn.discounted_return) }], { say: plainly, what: "turn" })].filter(Boolean);
  const box = make("div", { class: "charts" }, ...drawn);
  box.style.setProperty("--row", Math.ceil(drawn.length / Math.ceil(drawn.length / 4)));  // so that all rows are about as long
  return box;
}
