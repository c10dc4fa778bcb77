// ---- polls the server for changes once a second

const known = new Map();

async function follow() {
  let words = "live";
  try {
    const answer = await fetch(`changes/${DATA.version}`);
    if (!answer.ok) throw new Error(answer.statusText);
    take(await answer.json());
  } catch { words = "the server has stopped"; }
  if (byId("live").textContent !== words) byId("live").textContent = words;
  setTimeout(follow, 1000);
}

function take(changes) {
  if (changes.version === DATA.version) return;
  const first = DATA.version === 0, before = episode(), atEnd = before?.ended === "running" && state.turn === turns().length - 1;
  DATA.version = changes.version;
  for (const [key, item] of Object.entries(changes.episodes)) known.set(key, item);
  DATA.episodes = changes.order.map(key => known.get(key)).filter(Boolean);
  const at = DATA.episodes.findIndex(item => item.id === before?.id);
  if (first || at < 0) { select(Math.max(DATA.episodes.length - 1, 0)); choose(); return arriving(); }
  state.at = at;
  choose();
  drawList();
  if (episode() === before) return;
  if (atEnd) state.turn = turns().length - 1;
  drawView();
}

begin();
byId("count").after(" · ", make("span", { id: "live", role: "status" }));
follow();
