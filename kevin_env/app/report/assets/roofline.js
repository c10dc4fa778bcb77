// ---- the roofline: timed turns and the measured ceilings of the device, on logarithmic axes

const RH = 160, RLEFT = 56, RTOP = 20, RBOTTOM = 32;
const prefixed = (value, unit) => { const at = Math.min(Math.max(Math.floor(Math.log10(value) / 3 + 1e-9), 0), 5); return `${Number((value / 1000 ** at).toPrecision(3))} ${["", "k", "M", "G", "T", "P"][at]}${unit}`; };

// The powers of ten that hold all of the values.
function decades(values) {
  const from = Math.floor(Math.log10(Math.min(...values))), to = Math.ceil(Math.log10(Math.max(...values)) + 1e-9);
  return [from, Math.max(to, from + 1)];
}

// Both ends of a range, or one if they differ by noise only.
const ends = ([low, high]) => (high > 1.1 * low ? [high, low] : [high]);

const between = (range, unit) => ends(range).reverse().map(value => prefixed(value, unit)).join(" to ");

const intensity = ({ roofline }) => roofline.flops / roofline.bytes;

function rooflineTooltip(mark) {
  const { fraction, bound, rate, bandwidth } = mark.roofline;
  return [`${mark.problem}, turn ${mark.turn}`, `${percent(fraction)} of the roofline, bound by ${bound}`, `${prefixed(rate, "FLOP/s")}, ${prefixed(bandwidth, "B/s")}`, `${Number(intensity(mark).toPrecision(3))} FLOP/B`].join("\n");
}

function rooflineChart() {
  const marks = RUN.roofline, [memory, compute] = ["memory_ceiling", "compute_ceiling"].map(name => marks.map(mark => mark.roofline[name])).map(all => [Math.min(...all), Math.max(...all)]);
  const [x0, x1] = decades([...marks.map(intensity), compute[1] / memory[1]]), [y0, y1] = decades([...marks.map(mark => mark.roofline.rate), compute[0], compute[1]]);
  const x = value => RLEFT + ((Math.log10(value) - x0) / (x1 - x0)) * (W - RLEFT - RIGHT), y = value => RH - RBOTTOM - ((Math.log10(value) - y0) / (y1 - y0)) * (RH - RBOTTOM - RTOP);
  const every = (from, to, most) => Array.from({ length: to - from + 1 }, (_, n) => from + n).filter(power => (power - from) % Math.ceil((to - from + 1) / most) === 0);
  const across = every(y0, y1, 7).flatMap(power => [make("line", { class: "axis", x1: RLEFT, x2: W - RIGHT, y1: y(10 ** power), y2: y(10 ** power) }), make("text", { x: RLEFT - 4, y: y(10 ** power) + 4, "text-anchor": "end" }, prefixed(10 ** power, ""))]);
  const below = every(x0, x1, 8).map(power => make("text", { x: x(10 ** power), y: RH - RBOTTOM + 15, "text-anchor": power === x1 ? "end" : "middle" }, power < -1 || power > 3 ? `1e${power}` : String(10 ** power)));
  const names = [make("text", { x: (RLEFT + W - RIGHT) / 2, y: RH - 5, "text-anchor": "middle" }, "FLOP per byte"), make("text", { x: 2, y: 10 }, "FLOP/s")];
  const roofs = ends(memory).map((rate, n) => {
    const start = Math.max(10 ** x0, 10 ** y0 / rate), ridge = Math.min(compute[1] / rate, 10 ** x1);
    return make("path", { class: n ? "roof low" : "roof", d: `M${x(start)} ${y(start * rate)}L${x(ridge)} ${y(ridge * rate)}` }, make("title", {}, `memory: ${prefixed(rate, "B/s")}`));
  });
  const tops = ends(compute).map((rate, n) => make("path", { class: n ? "roof low" : "roof", d: `M${x(Math.min(Math.max(rate / memory[1], 10 ** x0), 10 ** x1))} ${y(rate)}L${W - RIGHT} ${y(rate)}` }, make("title", {}, `arithmetic: ${prefixed(rate, "FLOP/s")}`)));
  const dots = marks.map(mark => make("circle", { class: `point mark ${mark.roofline.bound === "compute" ? "second" : ""}`, cx: x(intensity(mark)), cy: y(mark.roofline.rate), r: 3.4, on: { click: () => { location.href = address(mark.place, mark.turn); } } }, make("title", {}, rooflineTooltip(mark))));
  const label = `Roofline: ${plural(marks.length, "timed turn", "timed turns")}, ${percent(Math.max(...marks.map(mark => mark.roofline.fraction)))} of it reached at best`;
  const drawing = make("svg", { viewBox: `0 0 ${W} ${RH}`, role: "img", "aria-label": label, id: "roofline" }, make("title", {}, label), ...across, ...below, ...names, ...roofs, ...tops, ...dots);
  const figure = chart("Roofline of this device", [entry(`memory, ${between(memory, "B/s")}`, swatch("first")), entry(`arithmetic, ${between(compute, "FLOP/s")}`, swatch("second")),
    ...(ends(memory).length + ends(compute).length > 2 ? [entry("solid: the fastest ceiling that was measured, dashed: the slowest", null)] : [])], drawing);
  if (RUN.roofline_left_out) figure.append(make("figcaption", { class: "dim" }, `Not shown, since they have no FLOPs or come after the first ${many(marks.length)}: ${plural(RUN.roofline_left_out, "turn", "turns")}`));
  return figure;
}
