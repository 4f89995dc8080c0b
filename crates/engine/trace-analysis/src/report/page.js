
// The page around the charts: tiles, tables, what is chosen.

let chosenSteps = null;
function selection() {
  return chosenSteps;
}
// Chooses steps by their places among all, or none of them.
function chooseSteps(first, last) {
  chosenSteps = first === null ? null : [first, last];
  const field = byId("filter-step");
  const names = chosenSteps && chosenSteps.map((at) => data.rows[at].step);
  field.value = names ? (names[0] === names[1] ? names[0] : names.join("-")) : "";
  timeline.setFilter({ steps: chosenSteps });
  timeline.showSteps(chosenSteps);
  for (const chart of charts) if (chart !== timeline) chart.draw();
  table.mark();
  showNumbers();
}
// Everything that is summed up over the steps: of the chosen ones, or of all.
function showNumbers() {
  const summary = chosenSteps ? summarizeSteps(...chosenSteps) : data.summary;
  verdict(summary);
  findings();
  tiles(summary);
  backends(summary);
  gaps(summary);
  path(summary);
  stages(summary);
}
byId("filter-step").addEventListener("change", (event) => {
  const found = event.target.value.trim().match(/^(\d+)\s*(?:[-–:]\s*(\d+))?$/);
  if (!found) return chooseSteps(null);
  const place = (name) => data.rows.findIndex((row) => row.step >= Number(name));
  const first = place(found[1]);
  const last = found[2] ? data.rows.findLastIndex((row) => row.step <= Number(found[2])) : first;
  first < 0 || last < first ? chooseSteps(null) : chooseSteps(first, last);
});
byId("filter-subregion").addEventListener("change", (event) => {
  const text = event.target.value.trim();
  timeline.setFilter({ subregion: /^\d+$/.test(text) ? Number(text) : null });
});

function head() {
  const { summary } = data;
  const { program, machine } = summary;
  const name = [program.name, program.version].filter(Boolean).join(" ") || "a program";
  document.title = `${name}: trace`;
  byId("title").textContent = name + (program.arguments ? " " + program.arguments.join(" ") : "");
  const when = new Date(summary.start_unix_ms).toISOString().slice(0, 16).replace("T", " ");
  const parts = [machine.processor, `${machine.cores} threads`, ...(machine.gpus || []), machine.system,
    summary.device, when + " UTC", summary.clock === "virtual" ? "virtual clock" : ""];
  byId("subtitle").textContent = parts.filter(Boolean).join(" · ");
  byId("damage").hidden = !summary.damage;
  byId("damage").textContent = summary.damage ? "Incomplete: " + summary.damage + "." : "";
  byId("thinned").textContent = data.thinned ? "Most steps are drawn by one bar per interval; the first, the last, the slowest and those that the policy changed have all their bars." : "";
}

// The verdict of the whole run, or how busy the backends are in the chosen steps and why not busier.
function verdict(summary) {
  const text = chosenSteps ? ofSteps(summary) : data.summary.verdict;
  const sentence = text[0].toUpperCase() + text.slice(1) + ".";
  // What stands between backticks is a name.
  byId("verdict").replaceChildren(...sentence.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part)));
}
function ofSteps(summary) {
  const [first, last] = chosenSteps.map((at) => data.rows[at].step);
  const steps = first === last ? `in step ${first}` : `in steps ${first} to ${last}`;
  if (!data.backends.length) return `${steps} no backend computes`;
  const use = data.backends.map((name) => `${name} computes ${percent(summary.backends[name].utilisation)}`);
  const at = data.backends.length > 1 ? data.backends.length : 0;
  const [longest] = reasons(at, chosenSteps);
  const nobody = data.backends.length > 1 ? "no backend computes" : "it does not compute";
  const why = longest ? `; ${nobody} longest while: \`${longest.cause}\` (${duration(longest.ms / summary.steps)} a step)` : "";
  return `${steps} ${use.join(", ")} of the time${why}`;
}

function tiles(summary) {
  byId("tiles").replaceChildren();
  const half = `half within ${duration(summary.step_ms.lower_quartile)} and ${duration(summary.step_ms.upper_quartile)}`;
  const all = [
    ["steps", "steps", number(summary.steps, 7), duration(summary.total_ms) + " together"],
    ["step_ms.median", "median step", duration(summary.step_ms.median), half],
    ...Object.entries(summary.backends).map(([name, backend]) =>
      [`backends.${name}.utilisation`, `${name} computes`, percent(backend.utilisation), duration(backend.busy) + " busy"]),
    ["imbalance", "imbalance", percent(summary.imbalance), "how much earlier one backend is ready"],
    ["overlap", "overlap", percent(summary.overlap), "of transfers hidden by computing"],
    ["critical_path_ms", "critical path", duration(summary.critical_path_ms), percent(summary.critical_path_ms / summary.total_ms) + " of the time"],
    ["settle_steps", "settled after", summary.settle_steps === null ? "–" : summary.settle_steps + " steps",
      (summary.share || summary.theta || {}).oscillates ? "goes to and fro" : "until the split stays"],
  ];
  for (const [key, what, value, note] of all) {
    // What the trace cannot know is left out.
    if (value === "–") continue;
    const tile = element("div", { class: "tile", "data-key": key },
      element("div", { class: "what" }, what), element("div", { class: "value" }, value), element("div", { class: "note" }, note));
    byId("tiles").append(tile);
  }
}

function backends(summary) {
  byId("backends").replaceChildren(...data.backends.map((name, at) => {
    const backend = summary.backends[name];
    const part = (ms, color) => element("span", { style: `width:${(100 * ms) / summary.total_ms}%;background:var(--${color})` });
    const stack = element("div", { class: "stack" }, part(backend.busy, `backend-${at % 4}`), part(backend.waiting, "waiting"), part(backend.idle, "idle"));
    const moved = backend.overlap === null ? "" : `; transfers ${duration(backend.transfers)}, ${percent(backend.overlap)} hidden`;
    const why = reasons(at, chosenSteps).filter((one) => !one.between).slice(0, 2);
    const because = why.length ? `; does not compute for ${percent(backend.idle_share)}: ` +
      why.map((one) => `${one.cause} ${duration(one.ms / summary.steps)} a step`).join(", ") : "";
    const text = `busy ${duration(backend.busy)}, waiting ${duration(backend.waiting)}, idle ${duration(backend.idle)}${moved}${because}`;
    return element("div", { class: "backend" }, element("b", {}, name), stack, element("div", { class: "text" }, text));
  }));
}
function gaps(summary) {
  const found = reasons(data.backends.length, chosenSteps);
  byId("gaps-card").hidden = !found.length || !data.backends.length;
  const row = (kind, cells) => element("tr", {}, ...cells.map((text) => element(kind, {}, text)));
  byId("gaps").replaceChildren(element("thead", {}, row("th", ["stage", "per step", "together", "of the steps' time"])),
    element("tbody", {}, ...found.slice(0, 12).map((one) => row("td", [
      one.cause + (one.between ? " (between steps)" : ""), duration(one.ms / summary.steps), duration(one.ms),
      one.between ? "–" : percent(one.ms / summary.total_ms)]))));
}
// Work of other threads next to the steps.
function besides() {
  const found = Object.entries(data.summary.beside).sort((a, b) => b[1] - a[1]);
  byId("beside-card").hidden = !found.length;
  byId("beside").replaceChildren(...found.map(([name, ms]) => element("tr", {},
    element("td", {}, name.replace("beside.", "")), element("td", {}, duration(ms)), element("td", {}, percent(ms / data.summary.run_ms) + " of the run"))));
}
function legends() {
  const legend = byId("legend");
  for (const [phase, name] of [["upload", "upload"], ["download", "download"], ["exchange", "exchange"]]) {
    if (data.tracks.some((track) => track.phase === phase)) legend.append(key(`--${phase}`, name));
  }
  data.backends.forEach((backend, at) => legend.append(key(`--backend-${at % 4}`, `${backend} computes`)));
  if (data.tracks.some((track) => track.backend === "caller")) legend.append(key("--caller", "the host"));
  if (data.details.gaps.length) legend.append(element("span", {}, element("i", { class: "hatched" }), "no backend computes"));
}
const key = (color, name) => element("span", {}, element("i", { style: `background:var(${color})` }), name);

// What costs time in the whole run, and the slowest of the steps that are shown.
function findings() {
  const { advice, slowest } = data.summary;
  byId("findings").hidden = !advice.length || Boolean(chosenSteps);
  byId("advice").replaceChildren(...advice.map((text) => element("li", {}, text)));
  const [first, last] = chosenSteps ? chosenSteps.map((at) => data.rows[at].step) : [-Infinity, Infinity];
  const slow = slowest.filter((one) => first <= one.step && one.step <= last);
  byId("slow-card").hidden = !slow.length;
  byId("slow").replaceChildren(...slow.map((one) => element("li", {}, `step ${one.step}, ${duration(one.ms)}: ${one.cause}`)));
}
function lists() {
  byId("lines-card").hidden = !data.lines.length;
  byId("lines").append(...data.lines.map((line) => element("tr", {},
    element("td", {}, duration(line.at_ms)), element("td", {}, line.kind), element("td", {}, line.text))));
}

function path(summary) {
  const most = summary.critical_path.length ? summary.critical_path[0].ms : 1;
  byId("path").replaceChildren(...summary.critical_path.slice(0, 12).map((part) =>
    element("div", { class: "row" }, element("span", { class: "name", title: part.what }, part.what),
      element("span", { class: "meter" }, element("i", { style: `width:${(100 * part.ms) / most}%` })),
      element("span", { class: "number" }, `${duration(part.ms)}`))));
}

function stages(summary) {
  const entries = Object.entries(summary.stages).sort((a, b) => b[1].total_ms - a[1].total_ms);
  const heads = ["stage", "count", "total", "own", "median per step", "middle half", "per M pairs", "per M tests"];
  const known = (pick) => entries.some(([, stage]) => pick(stage) !== null);
  const shown = [true, true, true, true, true, true, known((stage) => stage.ms_per_million_pairs), known((stage) => stage.ms_per_million_tests)];
  const row = (kind, cells) => element("tr", {}, ...cells.filter((_, at) => shown[at]).map((text) => element(kind, {}, text)));
  byId("stages").replaceChildren(element("thead", {}, row("th", heads)), element("tbody", {}, ...entries.map(([name, stage]) =>
    row("td", [name, number(stage.count, 7), duration(stage.total_ms), duration(stage.self_ms), duration(stage.per_step_ms.median),
      `${duration(stage.per_step_ms.lower_quartile)} … ${duration(stage.per_step_ms.upper_quartile)}`,
      duration(stage.ms_per_million_pairs), duration(stage.ms_per_million_tests)]))));
}

// The table of steps, a page at a time, in any order.
const table = (() => {
  const PAGE = 25;
  const all = [
    ["step", (row) => row.step, (v) => String(v)], ["begin", (row) => row.begin_ms, duration], ["time", (row) => row.ms, duration],
    ["critical path", (row) => row.critical_path_ms, duration], ["points", (row) => row.points, large], ["pairs", (row) => row.pairs, large],
    ["tested", (row) => row.work, large], ["θ", (row) => (row.theta === "inf" ? Infinity : row.theta), (v) => number(v, 4)],
    ["CPU share", (row) => row.share, percent], ["imbalance", (row) => row.imbalance, percent], ["overlap", (row) => row.overlap, percent],
    ...data.backends.map((backend, at) => [`${backend} busy`, (row) => row.backends[at][0], duration]),
  ];
  const columns = all.filter(([, pick]) => data.rows.some((row) => pick(row) !== null));
  let order = data.rows.map((_, at) => at);
  let [sorted, up, page] = [0, true, 0];
  const pages = Math.ceil(order.length / PAGE);
  function draw() {
    const heads = columns.map(([name], at) => element("th", {}, name + (at === sorted ? (up ? " ↑" : " ↓") : "")));
    heads.forEach((cell, at) => cell.addEventListener("click", () => sort(at)));
    const shown = order.slice(page * PAGE, (page + 1) * PAGE).map((place) => {
      const row = data.rows[place];
      const made = element("tr", { "data-place": place }, ...columns.map(([, pick, text]) => element("td", {}, text(pick(row)))));
      made.addEventListener("click", () => chooseSteps(place, place));
      return made;
    });
    byId("steps").replaceChildren(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...shown));
    byId("page-place").textContent = pages > 1 ? `${page + 1} of ${pages}` : "";
    mark();
  }
  function mark() {
    for (const row of document.querySelectorAll("#steps tbody tr")) {
      const place = Number(row.dataset.place);
      row.classList.toggle("chosen", Boolean(chosenSteps && place >= chosenSteps[0] && place <= chosenSteps[1]));
    }
  }
  function sort(at) {
    up = at === sorted ? !up : at === 0;
    sorted = at;
    const pick = columns[at][1];
    const value = (place) => pick(data.rows[place]) ?? -Infinity;
    order.sort((a, b) => { const [x, y] = [value(a), value(b)]; return (x < y ? -1 : x > y ? 1 : a - b) * (up ? 1 : -1); });
    page = 0;
    draw();
  }
  function turn(by) {
    page = Math.max(0, Math.min(pages - 1, page + by));
    draw();
  }
  byId("page-back").addEventListener("click", () => turn(-1));
  byId("page-on").addEventListener("click", () => turn(1));
  return { draw, mark };
})();

function makeCharts() {
  const column = (pick) => data.rows.map(pick);
  const some = (values) => values.some((value) => value !== null);
  stepChart("step-times", { clip: true, yText: axisTime, yName: "", series: [
    { name: "step", values: column((row) => row.ms), color: () => colors.accent, text: duration },
    { name: "critical path", values: column((row) => row.critical_path_ms), color: () => colors["backend-1"], text: duration },
  ] });
  const [shares, thetas] = [column((row) => row.share), column((row) => row.theta)];
  const optional = (card, present, make) => {
    byId(card).hidden = !present;
    if (present) make();
  };
  optional("share-card", some(shares), () => {
    stepChart("shares", { yText: percent, range: [0, 1], series: [{ name: "share", values: shares, color: () => colors["backend-0"], text: percent }] }).marks = true;
  });
  optional("theta-card", some(thetas), () => {
    stepChart("thetas", { yText: (v) => number(v), series: [{ name: "θ", values: thetas, color: () => colors.mark, text: (v) => number(v, 4) }] });
  });
  optional("occupancy-card", data.occupancies.length > 0, occupancyChart);
  optional("rate-card", data.points.length > 0, rateChart);
}

function drawAll() {
  readColors();
  for (const chart of charts) chart.draw();
}
byId("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--page").trim() === "#10141b";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  drawAll();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
new ResizeObserver(drawAll).observe(document.body);

readColors();
head();
legends();
lists();
besides();
showNumbers();
makeCharts();
table.draw();
drawAll();
document.body.dataset.ready = String(Math.round(performance.now()));
