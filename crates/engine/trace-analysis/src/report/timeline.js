
// The timeline: a row per track, bars by time; all times here are microseconds.

const timeline = (() => {
  const canvas = byId("timeline");
  const STRIDE = 6;
  const [TRACK, NAME, STEP, SUBREGION, BEGIN, LENGTH] = [0, 1, 2, 3, 4, 5];
  const { bars, rows } = data;
  const ROW = 26;
  const TOP = 40;
  const stepBegin = rows.map((row) => row.begin_ms * 1e3);
  const stepEnd = rows.map((row) => (row.begin_ms + row.ms) * 1e3);
  const whole = [stepBegin[0], Math.max(...stepEnd.slice(-1), stepBegin[0] + 1)];
  const byTrack = data.tracks.map(() => []);
  for (let at = 0; at < bars.length; at += STRIDE) byTrack[bars[at + TRACK]].push(at);
  for (const list of byTrack) list.sort((a, b) => bars[a + BEGIN] - bars[b + BEGIN]);
  let view = [...whole];
  let filter = { steps: null, subregion: null };
  let drawn = { bars: 0, matching: 0, gaps: 0 };
  const GAP = { stride: 7, step: 0, between: 1, begin: 2, length: 3, causes: 4 };
  const { gaps, causes } = data.details;
  const gutter = () => (canvas.clientWidth < 560 ? 98 : 124);

  // Index of the first bar of a list that ends after a moment.
  function first(list, moment) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bars[list[middle] + BEGIN] + bars[list[middle] + LENGTH] < moment) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 8);
  }
  function firstStep(moment) {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (stepEnd[middle] < moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  const matches = (at) =>
    (!filter.steps || (bars[at + STEP] >= filter.steps[0] && bars[at + STEP] <= filter.steps[1])) &&
    (filter.subregion === null || bars[at + SUBREGION] === filter.subregion);

  function draw() {
    canvas.style.height = TOP + ROW * data.tracks.length + 12 + "px";
    const { context, width, height } = prepare(canvas);
    const left = gutter();
    const scale = (width - left - 6) / (view[1] - view[0]);
    const px = (time) => left + (time - view[0]) * scale;
    drawSteps(context, px, width, height, left);
    drawn = { bars: 0, matching: 0, gaps: 0 };
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left - 6, height);
    context.clip();
    drawGaps(context, px, height);
    data.tracks.forEach((track, row) => drawTrack(context, track, row, px, width));
    context.restore();
    context.textAlign = "right";
    data.tracks.forEach((track, row) => {
      context.fillStyle = colors.ink;
      context.fillText(trackName(track), left - 8, TOP + ROW * (row + 0.5));
    });
  }

  function drawSteps(context, px, width, height, left) {
    context.textAlign = "center";
    let last = -Infinity;
    for (let at = firstStep(view[0]); at < rows.length && stepBegin[at] <= view[1]; at++) {
      const [a, b] = [Math.max(left, px(stepBegin[at])), Math.min(width - 6, px(stepEnd[at]))];
      if (b - a < 1 && a < last + 1) continue;
      if (at % 2 === 0 && b - a > 3) {
        context.fillStyle = colors.band;
        context.fillRect(a, TOP - 18, b - a, height - TOP + 12);
      }
      const text = String(rows[at].step);
      const half = context.measureText(text).width / 2 + 4;
      if (b - a > 2 * half && (a + b) / 2 - half > last) {
        context.fillStyle = colors.quiet;
        context.fillText(text, (a + b) / 2, TOP - 9);
        last = (a + b) / 2 + half;
      }
    }
    context.textAlign = "right";
    context.fillStyle = colors.quiet;
    context.fillText("step", left - 8, TOP - 9);
    context.fillText("time", left - 8, 10);
    context.textAlign = "center";
    const span = (view[1] - view[0]) / 1e3;
    for (const tick of ticks(view[0] / 1e3, view[1] / 1e3, Math.max(2, (width - left) / 110))) {
      const x = px(tick * 1e3);
      if (x < left || x > width - 6) continue;
      context.fillText(timeText(tick, span), Math.min(Math.max(x, left + 24), width - 30), 10);
      context.fillRect(Math.round(x), 18, 1, 4);
    }
  }
  const timeText = (ms, span) =>
    span > 2e4 ? number(ms / 1e3, 5) + " s" : span > 0.05 ? number(ms, 7) + " ms" : number(ms * 1e3, 9) + " µs";

  // Index of the first gap that ends after a moment.
  function firstGap(moment) {
    let [low, high] = [0, gaps.length / GAP.stride];
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = middle * GAP.stride;
      if (gaps[at + GAP.begin] + gaps[at + GAP.length] < moment) low = middle + 1;
      else high = middle;
    }
    return low * GAP.stride;
  }
  function drawGaps(context, px, height) {
    const [top, tall] = [TOP, ROW * data.tracks.length];
    const shapes = new Path2D();
    let last = -Infinity;
    for (let at = firstGap(view[0]); at < gaps.length && gaps[at + GAP.begin] <= view[1]; at += GAP.stride) {
      const [a, b] = [px(gaps[at + GAP.begin]), px(gaps[at + GAP.begin] + gaps[at + GAP.length])];
      drawn.gaps++;
      if (b < last + 0.5) continue;
      last = b;
      shapes.rect(a, top, Math.max(0.7, b - a), tall);
    }
    context.save();
    context.clip(shapes);
    context.strokeStyle = colors.hatch;
    context.lineWidth = 1.2;
    context.beginPath();
    for (let x = gutter() - tall; x < canvas.clientWidth + tall; x += 7) {
      context.moveTo(x, top + tall);
      context.lineTo(x + tall, top);
    }
    context.stroke();
    context.restore();
  }
  function gapAt([x, y]) {
    if (x < gutter() || y < TOP || y > TOP + ROW * data.tracks.length) return null;
    const time = moment(x);
    const at = firstGap(time);
    return at < gaps.length && gaps[at + GAP.begin] <= time ? at : null;
  }
  function describeGap(at) {
    const named = [0, 1, 2].map((k) => causes[gaps[at + GAP.causes + k]]).filter(Boolean);
    const row = rows[gaps[at + GAP.step]];
    const place = gaps[at + GAP.between] ? `after step ${row.step}` : `step ${row.step}`;
    return [`no backend computes, ${duration(gaps[at + GAP.length] / 1e3)}`, ...named, place].join("\n");
  }

  function drawTrack(context, track, row, px, width) {
    const list = byTrack[row];
    const color = trackColor(track);
    const [top, tall] = [TOP + ROW * row + 3, ROW - 6];
    let last = -Infinity;
    for (let k = first(list, view[0]); k < list.length; k++) {
      const at = list[k];
      if (bars[at + BEGIN] > view[1]) break;
      const [a, b] = [px(bars[at + BEGIN]), px(bars[at + BEGIN] + bars[at + LENGTH])];
      if (b < 0) continue;
      const fits = matches(at);
      drawn.bars++;
      drawn.matching += fits;
      // What would cover the same pixel again is left out.
      if (b < last + 0.5 && fits) continue;
      if (fits) last = Math.max(last, b);
      context.globalAlpha = fits ? 1 : 0.13;
      context.fillStyle = color;
      const gap = b - a > 4 ? 1 : 0;
      context.fillRect(a, top, Math.max(0.7, b - a - gap), tall);
      if (b - a > 46 && fits) label(context, at, Math.max(a, gutter()), Math.min(b, width), top + tall / 2);
    }
    context.globalAlpha = 1;
  }

  function label(context, at, a, b, y) {
    const name = data.names[bars[at + NAME]];
    const text = bars[at + SUBREGION] >= 0 ? "#" + bars[at + SUBREGION] : name;
    if (context.measureText(text).width > b - a - 10) return;
    context.fillStyle = colors.card;
    context.textAlign = "left";
    context.fillText(text, a + 5, y + 0.5);
  }

  function zoom(factor, at = (view[0] + view[1]) / 2) {
    const length = Math.min((view[1] - view[0]) * factor, whole[1] - whole[0]);
    const share = (at - view[0]) / (view[1] - view[0]);
    show(at - share * Math.max(length, 0.5), Math.max(length, 0.5));
  }
  function show(begin, length) {
    const low = Math.max(whole[0], Math.min(begin, whole[1] - length));
    view = [low, low + length];
    draw();
  }
  const moment = (x) => {
    const left = gutter();
    return view[0] + ((x - left) / (canvas.clientWidth - left - 6)) * (view[1] - view[0]);
  };
  const local = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function barAt([x, y]) {
    const row = Math.floor((y - TOP) / ROW);
    const list = byTrack[row];
    if (!list || x < gutter()) return null;
    const time = moment(x);
    const slack = ((view[1] - view[0]) / canvas.clientWidth) * 2;
    for (let k = first(list, time - slack); k < list.length && bars[list[k] + BEGIN] <= time + slack; k++) {
      const at = list[k];
      if (bars[at + BEGIN] + bars[at + LENGTH] >= time - slack && matches(at)) return at;
    }
    return null;
  }
  function describe(at) {
    const track = data.tracks[bars[at + TRACK]];
    const row = rows[bars[at + STEP]];
    const place = bars[at + SUBREGION] >= 0 ? `, subregion ${bars[at + SUBREGION]}` : "";
    return [
      data.names[bars[at + NAME]], `${duration(bars[at + LENGTH] / 1e3)}, ${trackName(track)}`,
      `step ${row.step}${place}`, `at ${duration(bars[at + BEGIN] / 1e3)}`,
    ].join("\n");
  }

  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), moment(local(event)[0]));
  }, { passive: false });
  const held = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, local(event));
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = local(event);
    const before = held.get(event.pointerId);
    if (!before) {
      const [at, gap] = [barAt(now), gapAt(now)];
      return tip(event, at !== null ? describe(at) : gap !== null ? describeGap(gap) : "");
    }
    tip(event, "");
    const others = [...held.entries()].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (others.length) {
      const [old, fresh] = [Math.abs(before[0] - others[0][0]), Math.abs(now[0] - others[0][0])];
      if (old > 8 && fresh > 8) zoom(old / fresh, moment((now[0] + others[0][0]) / 2));
    } else {
      show(view[0] + moment(before[0]) - moment(now[0]), view[1] - view[0]);
    }
    held.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
    canvas.addEventListener(name, (event) => {
      held.delete(event.pointerId);
      canvas.classList.remove("moving");
      tip(event, "");
    });
  }
  canvas.addEventListener("dblclick", (event) => {
    const at = firstStep(moment(local(event)[0]));
    if (at < rows.length) chooseSteps(at, at);
  });
  canvas.addEventListener("keydown", (event) => {
    const length = view[1] - view[0];
    const act = {
      ArrowLeft: () => show(view[0] - length / 5, length), ArrowRight: () => show(view[0] + length / 5, length),
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => showSteps(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  function showSteps(range) {
    if (!range) return show(whole[0], whole[1] - whole[0]);
    const [a, b] = [stepBegin[range[0]], stepEnd[range[1]]];
    show(a - 0.02 * (b - a), (b - a) * 1.04 || 1);
  }
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => chooseSteps(null));
  return {
    draw,
    showSteps,
    setFilter(change) {
      filter = { ...filter, ...change };
      draw();
    },
    state: () => ({ view: [...view], whole: [...whole], filter: { ...filter }, ...drawn }),
  };
})();
charts.push(timeline);
