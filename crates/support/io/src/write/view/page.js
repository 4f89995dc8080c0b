// The controls. The first frame is shown as soon as it is there.

const number = (id) => Number(element(id).value);
let shown = -1, frame, charts = [], complete = false;
let playing = false, busy = false, wanted = -1;
const MILLISECONDS_PER_FRAME = 60;

const fault = (error) => {
  element("fault").textContent = `The points cannot be drawn: ${error.message}`;
  document.body.dataset.state = "failed";
};

let waiting = false;
function redraw() {
  if (waiting || !frame) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  const [size, slice, from, to] = ["size", "slice", "from", "to"].map(number);
  drawScene(frame, { size, slice, from, to });
  const { low, high, open } = about.scales[number("quantity")];
  const valueAt = (share) => short(low + share * (high - low));
  const more = open && to === 1 ? " and more" : "";
  element("shown").textContent = `${valueAt(from)} to ${valueAt(to)}${more}`;
}

function redrawCharts() {
  if (!frame) return;
  drawValues(frame.values[number("quantity")], about.scales[number("quantity")]);
  const at = frames[shown].head.at;
  charts.forEach(({ canvas, chart }) => drawChart(canvas, chart, at));
}

/// Shows a frame. While one is unpacked, the one wanted last waits.
async function show(index) {
  wanted = index;
  if (busy) return;
  busy = true;
  try {
    while (wanted !== shown) {
      const next = wanted;
      frame = await frameAt(next);
      shown = next;
      refresh();
    }
  } catch (error) {
    fault(error);
  }
  busy = false;
}

function refresh() {
  upload(frame, number("quantity"));
  const { points, all, label } = frames[shown].head;
  const count = points.toLocaleString("en");
  const part = all ? `${count} of ${all.toLocaleString("en")}` : count;
  element("facts").textContent = `${part} points`;
  element("moment").textContent = label;
  element("time").value = shown;
  redrawCharts();
  draw();
  document.body.dataset.drawn = colouredShare().toFixed(4);
  document.body.dataset.frame = shown;
  if (complete && document.body.dataset.state !== "failed") document.body.dataset.state = "drawn";
}

function frameAdded() {
  element("times").hidden = frames.length < 2;
  element("time").max = frames.length - 1;
  if (frames.length === 1) show(0);
}

/// All frames are there.
function finish(all) {
  complete = true;
  document.body.dataset.frames = frames.length;
  charts = all.map((chart) => {
    const title = document.createElement("h2"), canvas = document.createElement("canvas");
    title.textContent = chart.title;
    canvas.className = "chart";
    canvas.setAttribute("aria-label", chart.title);
    element("charts").append(title, canvas);
    return { canvas, chart };
  });
  if (frame) refresh();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (frames.length > 1 && !still) play(true);
}

function play(on) {
  playing = on;
  element("play").textContent = on ? "Pause" : "Play";
  if (on && shown === frames.length - 1) show(0);
  const tick = async () => {
    if (!playing) return;
    if (shown >= frames.length - 1) return play(false);
    const begin = performance.now();
    await show(shown + 1);
    setTimeout(tick, Math.max(0, MILLISECONDS_PER_FRAME - (performance.now() - begin)));
  };
  if (on) setTimeout(tick, MILLISECONDS_PER_FRAME);
}

function listenToFingers() {
  const fingers = new Map();
  scene.addEventListener("pointerdown", (event) => {
    scene.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    scene.addEventListener(name, (event) => fingers.delete(event.pointerId));
  }
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  };
  const zoom = (factor) => {
    view.distance = Math.min(10, Math.max(0.2, view.distance * factor));
  };
  scene.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const wide = fingers.size === 2 ? apart() : 0;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    if (wide > 0) zoom(wide / Math.max(1, apart()));
    else turn(0.008 * (event.clientX - before[0]), 0.008 * (event.clientY - before[1]));
    redraw();
  });
  scene.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(0.001 * event.deltaY));
    redraw();
  }, { passive: false });
  scene.addEventListener("dblclick", () => { view = { ...START }; redraw(); });
}

function turn(across, along) {
  view.turn += across;
  view.tilt = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, view.tilt + along));
}

function listen() {
  listenToFingers();
  scene.addEventListener("keydown", (event) => {
    const across = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0] };
    const step = { ...across, ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
    if (step) { turn(...step); event.preventDefault(); redraw(); }
  });
  for (const id of ["size", "from", "to", "slice"]) element(id).addEventListener("input", redraw);
  element("quantity").addEventListener("change", () => { if (frame) refresh(); });
  element("time").addEventListener("input", () => { play(false); show(number("time")); });
  element("play").addEventListener("click", () => play(!playing));
  const again = () => { redrawCharts(); redraw(); };
  window.addEventListener("resize", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

// Depth is nothing in a plane.
element("slice").parentElement.hidden = about.flat;
about.scales.forEach(({ name }, index) => element("quantity").append(new Option(name, index)));
try {
  beginScene();
  listen();
} catch (error) {
  fault(error);
}
