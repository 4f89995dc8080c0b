
// Charts on canvases. Every chart is an object with draw() that is called again when the size or
// the theme changes.

const charts = [];
const MARGIN = { left: 60, right: 12, top: 10, bottom: 34 };

function frame(canvas, { x, y, xText, yText, xName, yName, xLog, yLog, xTicks, yTicks }) {
  const { context, width, height } = prepare(canvas);
  const area = { left: MARGIN.left, top: MARGIN.top, right: width - MARGIN.right, bottom: height - MARGIN.bottom };
  const scale = (range, log, from, to) => {
    const [a, b] = log ? range.map(Math.log10) : range;
    return (value) => from + (to - from) * (((log ? Math.log10(value) : value) - a) / (b - a || 1));
  };
  const px = scale(x, xLog, area.left, area.right);
  const py = scale(y, yLog, area.bottom, area.top);
  context.strokeStyle = colors.line;
  context.fillStyle = colors.quiet;
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const tick of yTicks || (yLog ? powers(...y) : ticks(...y, 4))) {
    if (tick < y[0] * (1 - 1e-9) || tick > y[1] * (1 + 1e-9)) continue;
    const at = Math.round(py(tick)) + 0.5;
    context.beginPath();
    context.moveTo(area.left, at);
    context.lineTo(area.right, at);
    context.stroke();
    context.fillText(yText(tick), area.left - 6, at);
  }
  context.textAlign = "center";
  let last = -Infinity;
  for (const tick of xTicks || (xLog ? powers(...x) : ticks(...x, Math.max(2, width / 90)))) {
    const at = px(tick);
    const text = xText(tick);
    const half = context.measureText(text).width / 2;
    if (at < area.left - 1 || at > area.right + 1 || at - half < last + 6) continue;
    last = at + half;
    context.fillText(text, Math.min(at, width - half - 2), area.bottom + 12);
  }
  context.fillText(xName, (area.left + area.right) / 2, area.bottom + 27);
  if (yName) {
    context.textAlign = "left";
    context.fillText(yName, area.left + 6, area.top + 6);
  }
  return { context, area, px, py };
}

// Values over the steps; lines are drawn by the least and greatest of every pixel's steps. With
// `clip` a few values far above all others, such as that of the first step, end at the upper edge.
function stepChart(id, { series, yText, yName, range, clip }) {
  const canvas = byId(id);
  const steps = data.rows.map((row) => row.step);
  const chart = { canvas };
  chart.draw = () => {
    const finite = series.flatMap((one) => one.values.filter((value) => typeof value === "number"));
    const greatest = finite.reduce((a, b) => Math.max(a, b), 0);
    const usual = [...finite].sort((a, b) => a - b)[Math.floor(0.98 * finite.length)] || 0;
    const clipped = clip && greatest > 3 * usual && usual > 0;
    const top = (clipped ? 1.5 * usual : greatest * 1.08) || 1;
    const view = { x: [0, Math.max(1, steps.length - 1)], y: range || [0, top] };
    const labels = ticks(...view.x, Math.max(2, canvas.clientWidth / 90)).filter(Number.isInteger);
    const drawn = frame(canvas, {
      ...view, yText, yName, xName: "step", xTicks: labels, xText: (at) => String(steps[at] ?? ""),
    });
    const { context, area, px, py } = drawn;
    chart.at = (x) => Math.round(((x - area.left) / (area.right - area.left)) * view.x[1]);
    const chosen = selection();
    if (chosen) {
      context.fillStyle = colors.band;
      const [a, b] = [px(chosen[0]), px(chosen[1])];
      context.fillRect(a - 2, area.top, Math.max(4, b - a + 4), area.bottom - area.top);
    }
    const settled = data.summary.settle_steps;
    if (chart.marks && settled) {
      context.strokeStyle = colors.mark;
      context.setLineDash([4, 4]);
      context.beginPath();
      context.moveTo(px(settled), area.top);
      context.lineTo(px(settled), area.bottom);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = colors.mark;
      context.textAlign = "left";
      context.fillText("settled", px(settled) + 5, area.bottom - 8);
    }
    for (const one of series) {
      context.strokeStyle = context.fillStyle = one.color();
      context.lineWidth = 1.6;
      context.beginPath();
      let [column, low, high, open] = [null, 0, 0, false];
      const flush = () => {
        if (column === null) return;
        context[open ? "lineTo" : "moveTo"](column, py(low));
        context.lineTo(column, py(high) + (low === high ? 0.01 : 0));
        open = true;
      };
      one.values.forEach((value, at) => {
        if (value === null || value === undefined) return;
        const shown = value === "inf" ? view.y[1] : Math.min(value, view.y[1]);
        const x = Math.round(px(at) * 2) / 2;
        if (x !== column) {
          flush();
          [column, low, high] = [x, shown, shown];
        } else {
          [low, high] = [Math.min(low, shown), Math.max(high, shown)];
        }
      });
      flush();
      context.stroke();
      if (one.values.length <= 60) {
        one.values.forEach((value, at) => {
          if (typeof value !== "number") return;
          context.beginPath();
          context.arc(px(at), py(Math.min(value, view.y[1])), 2.6, 0, 7);
          context.fill();
        });
      }
    }
    if (clipped) {
      context.fillStyle = colors.quiet;
      context.textAlign = "left";
      context.fillText(`the longest, ${yText(greatest)}, is beyond the edge`, area.left + 6, area.top + (yName ? 20 : 6));
    }
    if (series.length > 1) {
      context.textAlign = "right";
      let x = area.right - 4;
      for (const one of [...series].reverse()) {
        context.fillStyle = one.color();
        context.fillText(one.name, x, area.top + 6);
        x -= context.measureText(one.name).width + 14;
      }
    }
  };
  const under = (event) => {
    const at = chart.at(event.clientX - canvas.getBoundingClientRect().left);
    return at >= 0 && at < steps.length ? at : null;
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = under(event);
    if (at === null) return tip(event, "");
    const lines = series.map((one) => `${one.name}: ${one.text(one.values[at])}`);
    tip(event, [`step ${steps[at]}`, ...lines].join("\n"));
  });
  canvas.addEventListener("pointerleave", (event) => tip(event, ""));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at !== null) chooseSteps(at, at);
  });
  charts.push(chart);
  return chart;
}

// How many cells or bricks hold how many points, with the threshold.
function occupancyChart() {
  const canvas = byId("occupancy");
  const chart = { canvas };
  const shown = () => {
    const chosen = selection();
    const at = chosen ? chosen[0] : data.rows.length - 1;
    const before = data.occupancies.filter((one) => one.step <= at);
    return before[before.length - 1] || data.occupancies[0];
  };
  chart.draw = () => {
    const one = shown();
    const row = data.rows[Math.min(one.step, data.rows.length - 1)];
    byId("occupancy-title").textContent =
      `Occupancy: points per ${one.of.replace(/s$/, "")}, step ${row ? row.step : one.step}`;
    const counts = one.counts.filter(([points]) => points > 0);
    const empty = one.counts.find(([points]) => points === 0);
    const next = (at) => (counts[at + 1] ? counts[at + 1][0] : counts[at][0] + Math.max(1, counts[at][0] / 8));
    // Thresholds that differ between subregions divide no bar: some of its bricks are on either side.
    const theta = one.one_theta ? row && row.theta : null;
    const last = counts.length ? next(counts.length - 1) : 2;
    const least = counts.length ? counts[0][0] : 1;
    const spread = last / least > 40;
    const high = Math.max(last, typeof theta === "number" ? theta * 1.1 + 1 : 0);
    const total = counts.reduce((sum, [, cells]) => sum + cells, 0) || 1;
    const density = counts.map(([, cells]) => cells / total);
    const highest = density.reduce((a, b) => Math.max(a, b), 0);
    const top = highest * 1.12 || 1;
    const { context, area, px, py } = frame(canvas, {
      x: [spread ? least : 0, high], y: [0, top], xLog: spread, xName: "points", yText: (v) => percent(v),
      xText: (v) => number(v), xTicks: spread ? powers(least, high).flatMap((p) => [p, 2 * p, 5 * p]) : undefined,
    });
    counts.forEach(([points], at) => {
      const a = px(Math.max(points - (spread ? 0 : 0.4), spread ? least : 0));
      const b = px(next(at) - (spread ? 0 : 0.4));
      const goes = typeof theta === "number" && points > theta ? "gpu" : "cpu";
      context.fillStyle = theta === null || theta === undefined ? colors.accent : backendColor(goes);
      context.fillRect(a, py(density[at]), Math.max(1, b - a - 1), area.bottom - py(density[at]));
    });
    if (typeof theta === "number") {
      context.strokeStyle = context.fillStyle = colors.mark;
      context.lineWidth = 2;
      const x = px(Math.max(theta + 0.5, spread ? least : 0));
      context.beginPath();
      context.moveTo(x, area.top);
      context.lineTo(x, area.bottom);
      context.stroke();
      const right = x < (area.left + area.right) / 2;
      context.textAlign = right ? "left" : "right";
      context.fillText(`θ = ${number(theta)}`, x + (right ? 6 : -6), area.top + 8);
    }
    // On the side where the highest bar is not.
    const peak = density.indexOf(highest);
    const left = peak >= 0 && px(counts[peak][0]) > (area.left + area.right) / 2;
    context.textAlign = left ? "left" : "right";
    context.fillStyle = colors.quiet;
    const whole = counts.reduce((sum, [, cells]) => sum + cells, 0) * one.one_in;
    const note = `${large(whole)} occupied` + (empty ? `, ${large(empty[1] * one.one_in)} empty` : "");
    const lines = one.split ? [note, `all jobs: ${large(one.split[0])} of ${large(one.split[1])} on the CPU`] : [note];
    if (one.split && !one.one_theta) lines.push("θ differs between subregions");
    const topLine = area.top + (typeof theta === "number" ? 26 : 8);
    lines.forEach((line, at) => context.fillText(line, left ? area.left + 4 : area.right - 4, topLine + 16 * at));
  };
  charts.push(chart);
}

// Labels from the upmost to the lowest, moved down where they would lie less than `gap` below the
// one before.
function apart(labels, gap) {
  const sorted = [...labels].sort((a, b) => a.at - b.at);
  let last = -Infinity;
  return sorted.map((label) => {
    last = Math.max(label.at, last + gap);
    return { ...label, at: last };
  });
}

// Pairs per second against pairs per point, with the best of every backend as its roof.
function rateChart() {
  const canvas = byId("rates");
  const chart = { canvas };
  const points = data.points;
  const extent = (pick) => points.reduce(([a, b], one) => [Math.min(a, pick(one)), Math.max(b, pick(one))], [Infinity, 0]);
  const [x, y] = [extent((one) => one.pairs_per_point), extent((one) => one.pairs_per_second)];
  const view = { x: [x[0] / 1.5, x[1] * 1.5], y: [y[0] / 2, y[1] * 2.5] };
  chart.draw = () => {
    const both = ([low, high]) => powers(low, high).flatMap((p) => (high / low < 100 ? [p, 2 * p, 5 * p] : [p]));
    const { context, area, px, py } = frame(canvas, {
      ...view, xLog: true, yLog: true, xName: "pairs to test per point", xText: large, yText: large,
      xTicks: both(view.x), yTicks: both(view.y),
    });
    chart.place = (one) => [px(one.pairs_per_point), py(one.pairs_per_second)];
    const labels = [];
    for (const backend of data.backends) {
      const own = points.filter((one) => one.backend === backend);
      if (!own.length) continue;
      const best = own.reduce((a, one) => Math.max(a, one.pairs_per_second), 0);
      context.strokeStyle = context.fillStyle = backendColor(backend);
      context.setLineDash([5, 4]);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(area.left, py(best));
      context.lineTo(area.right, py(best));
      context.stroke();
      context.setLineDash([]);
      labels.push({ text: `${backend}: at best ${large(best)}/s`, at: py(best) - 8, color: context.fillStyle });
      context.globalAlpha = own.length > 500 ? 0.35 : 0.7;
      for (const one of own) {
        const [cx, cy] = chart.place(one);
        context.beginPath();
        context.arc(cx, cy, 3, 0, 7);
        context.fill();
      }
      context.globalAlpha = 1;
    }
    context.textAlign = "left";
    for (const { text, at, color } of apart(labels, 14)) {
      context.fillStyle = color;
      context.fillText(text, area.left + 6, at);
    }
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [mx, my] = [event.clientX - box.left, event.clientY - box.top];
    let [found, near] = [null, 12];
    for (const one of points) {
      const [cx, cy] = chart.place(one);
      const away = Math.hypot(cx - mx, cy - my);
      if (away < near) [found, near] = [one, away];
    }
    tip(event, found && `${found.name}\n${large(found.pairs_per_second)} pairs/s, ${number(found.pairs_per_point)} per point`);
  });
  canvas.addEventListener("pointerleave", (event) => tip(event, ""));
  charts.push(chart);
}
