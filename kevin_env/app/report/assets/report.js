// ---- the report of a run, before its trajectories

function tiles() {
  const { overall, k, baseline } = RUN, speeds = overall.speed[baseline], { totals } = overall;
  const found = [["correct", overall.correct.avg, percent], k > 1 ? [`pass@${k}`, overall.correct.best[k], percent] : null,
    speeds ? ["mean speedup", speeds.speedup.avg, speed] : null, speeds && k > 1 ? [`best@${k}`, speeds.speedup.best[k], speed] : null,
    speeds ? ["fast_1", speeds.fast["1"].avg, percent] : null, ["hack rate", overall.rates.hack, percent]].filter(Boolean);
  const used = (totals.prompt_tokens ?? 0) + (totals.completion_tokens ?? 0);
  const sums = [used ? ["tokens", roughly(used)] : null, totals.cost === null ? null : ["cost", fixed(totals.cost, totals.cost < 1 ? 4 : 2)], ["device seconds", roughly(totals.device_seconds)]].filter(Boolean);
  const tile = (name, value, small) => make("div", {}, make("span", { class: "dim" }, name), make("b", {}, ...cell(value)), make("small", { class: "dim" }, small));
  return make("div", { class: "tiles" }, ...found.map(([name, figure, say]) => tile(name, say(figure.value), figure.low === null ? "one problem" : `${say(figure.low)} to ${say(figure.high)}`)), ...sums.map(([name, value]) => tile(name, value, "total")));
}

// A cell such as 83.3% [66.7, 100.0], its interval beside or below its value.
function cell(text) {
  const [value, interval] = text.split(/(?= \[)/), shown = /^0\.\d+x$/.test(value) ? faster(parseFloat(value)) : value;
  return interval ? [shown, make("small", { class: "dim" }, interval)] : [shown];
}

const wide = grid => grid.headings.length > 4;

function gridPart(grid) {
  const rows = grid.rows.map((row, n) => make("tr", { class: grid.sections.includes(n) ? "ruled" : null }, ...row.map((text, at) => make(at ? "td" : "th", { class: at ? "num" : null, scope: at ? null : "row" }, ...(at ? cell(text) : [text])))));
  const head = make("tr", {}, ...grid.headings.map((name, at) => make("th", { class: at ? "num" : null }, name)));
  return make("section", { class: wide(grid) ? "wider" : null }, make("h3", {}, grid.title), make("div", { class: "across" }, make("table", { class: "grid" }, make("thead", {}, head), make("tbody", {}, ...rows))));
}

function kindsPart() {
  const all = RUN.overall.counts.turns, most = Math.max(...RUN.kinds.map(each => each.turns));
  const rows = RUN.kinds.map(each => {
    const length = make("span", { class: `length ${look(each)}` });
    length.style.width = `${Math.max((100 * each.turns) / most, 0.5)}%`;
    return make("tr", {}, make("th", { scope: "row" }, make("span", { class: look(each) }, `${each.category}/${each.kind}`)), make("td", { class: "num" }, many(each.turns)), make("td", { class: "num dim" }, percent(each.turns / all)),
      make("td", { class: "dim" }, each.hack ? "hack" : ""), make("td", { class: "lengths" }, length));
  });
  return make("section", { class: "remaining" }, make("h3", {}, "Turns by outcome"), make("div", { class: "across" }, make("table", { class: "grid", id: "kinds" }, make("tbody", {}, ...rows))));
}

function hacksPart() {
  const all = RUN.hacks.length + RUN.more_hacks;
  if (!all) return make("section", {}, make("h3", {}, "Hacks"), make("p", { class: "dim" }, "No turn broke the rules or reported a false result."));
  const numbered = RUN.hacks.some(each => each.sample !== null), names = ["problem", ...(numbered ? ["sample"] : []), "turn", "verdict", "why"];
  const rows = RUN.hacks.map(each => make("tr", {}, make("th", { scope: "row" }, make("a", { class: "link", href: address(each.place, each.turn), title: each.problem }, each.problem)), numbered ? make("td", { class: "num" }, each.sample === null ? "" : String(each.sample)) : null,
    make("td", { class: "num" }, String(each.turn)), make("td", { class: each.category }, `${each.category}/${each.kind}`), make("td", { class: "message", title: each.message }, each.message)));
  return make("section", {}, make("h3", {}, "Hacks ", make("span", { class: "dim" }, many(all))), make("div", { class: "across low" }, make("table", { class: "grid", id: "hacks" },
    make("thead", {}, make("tr", {}, ...names.map(name => make("th", { class: name === "sample" || name === "turn" ? "num" : null }, name)))), make("tbody", {}, ...rows))),
    RUN.more_hacks ? make("p", { class: "dim" }, `and ${many(RUN.more_hacks)} more; see the trajectories`) : null);
}

function drawReport() {
  const { counts } = RUN.overall, [first, ...others] = RUN.grids;
  const facts = RUN.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const amounts = [plural(counts.problems, "problem", "problems"), plural(counts.trajectories, "trajectory", "trajectories"), plural(counts.turns, "turn", "turns")].join(", ");
  byId("report").append(make("h2", {}, RUN.title), make("p", { class: "facts" }, amounts), make("dl", { class: "facts" }, ...facts), tiles(), runCharts(),
    make("div", { class: "grids" }, gridPart(first), kindsPart(), ...others.filter(each => !wide(each)).map(gridPart), ...others.filter(wide).map(gridPart)), make("ul", { class: "dim notes" }, ...RUN.notes.map(note => make("li", {}, note))), hacksPart(), problemsPart());
  drawProblems();
}

// ---- navigation

// Focus of the report and address of the trajectory, restored when the user returns.
const left = { focus: null, address: null };

function stepRow(by) {
  const links = [...document.querySelectorAll("#problems a.link")], at = links.indexOf(document.activeElement.closest?.("#problems tr")?.querySelector("a.link"));
  const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

function toTrajectories() {
  if (!DATA.episodes.length) return;
  location.hash = left.address ?? `#${encodeURIComponent(episode().id)}/`;
  arriveReport();
}

const REPORT_KEYS = { j: () => stepRow(1), k: () => stepRow(-1), s: nextColumn, S: () => order.by && sortBy(order.by), "/": () => byId("filter").focus(), r: toTrajectories, t: theme, "?": help };

// Shows the report, or the trajectory in the address.
function arriveReport() {
  const there = DATA.episodes.length > 0 && location.hash.includes("/"), turned = byId("report").hidden !== there;
  if (turned && there) left.focus = document.activeElement;
  if (turned && !there) left.address = `#${encodeURIComponent(episode().id)}/${state.turn + 1}/${state.pane}`;
  byId("report").hidden = there;
  byId("columns").hidden = !there;
  keys = there ? KEYS : REPORT_KEYS;
  if (there) arrive();
  else byId("count").textContent = plural(RUN.overall.counts.trajectories, "trajectory", "trajectories");
  if (turned) (there ? byId("view") : byId("report").contains(left.focus) ? left.focus : byId("report")).focus();
}

function beginReport() {
  HELP.unshift(["", "in the report"], ["j k", "next, previous problem; Enter opens its fastest trajectory"], ["s S", "sort by the next column; reverse the order"], ["/", "filter problems: words, level:2, best>1.5, correct<50%, category:rules, -word"],
    ["r", "switch between report and trajectories"], ["", "in a trajectory"]);
  byId("columns").before(make("main", { id: "report", tabindex: "-1" }));
  drawReport();
  arriving = arriveReport;
  begin();
  if (!byId("report").hidden) byId("report").focus();
}

beginReport();
