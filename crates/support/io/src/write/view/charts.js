// The charts beside the scene, on canvases of two dimensions.

const short = (value) => Number(value.toPrecision(4)).toString();

/// A canvas of this height, cleared, in pixels of the page.
function pen(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const made = canvas.getContext("2d");
  made.scale(ratio, ratio);
  made.font = "12px sans-serif";
  made.fillStyle = made.strokeStyle = getComputedStyle(document.body).color;
  return { made, width };
}

/// How many points have each colour, over a bar of the colours.
function drawValues(words, scale) {
  const { made, width } = pen(element("values"), 150);
  const ink = made.fillStyle;
  const span = scale.high - scale.low;
  const exact = scale.whole && span < 60;
  const bins = exact ? span + 1 : Math.min(32, about.last + 1);
  const counts = new Array(bins).fill(0);
  for (const word of words) {
    const share = word / about.last;
    const bin = exact ? Math.round(share * (bins - 1)) : Math.floor(share * bins);
    counts[Math.min(bins - 1, bin)]++;
  }
  const tallest = Math.max(...counts, 1), bar = width / bins;
  counts.forEach((count, bin) => {
    made.fillStyle = viridis(bins > 1 ? bin / (bins - 1) : 0);
    const tall = 104 * count / tallest;
    made.fillRect(bin * bar, 112 - tall, Math.max(1, bar - 0.5), tall);
    made.fillRect(bin * bar, 116, bar + 0.5, 10);
  });
  made.fillStyle = ink;
  made.fillText(short(scale.low), 0, 142);
  made.textAlign = "right";
  made.fillText((scale.open ? "≥ " : "") + short(scale.high), width, 142);
  made.fillText(`${tallest.toLocaleString("en")} points`, width, 12);
}

/// Round steps of an axis.
function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= rough);
  const all = [];
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  for (let n = first; n <= last; n++) all.push(n * step);
  return all;
}

// Okabe and Ito's colours that are seen on both papers, told apart by dashes and markers too.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

function marker(made, kind, x, y) {
  made.beginPath();
  if (kind % 3 === 0) made.arc(x, y, 3.2, 0, 7);
  else if (kind % 3 === 1) made.rect(x - 2.9, y - 2.9, 5.8, 5.8);
  else {
    made.moveTo(x, y - 3.8);
    made.lineTo(x + 3.6, y + 2.8);
    made.lineTo(x - 3.6, y + 2.8);
    made.closePath();
  }
  made.stroke();
}

/// One chart; `at` is where the shown frame stands.
function drawChart(canvas, chart, at) {
  const all = chart.lines.flatMap((line) => line.points);
  const legend = 16 * chart.lines.length, height = 158 + legend;
  const { made, width } = pen(canvas, height);
  const ink = made.fillStyle;
  const ends = (axis) => {
    const values = all.map((point) => point[axis]);
    return [values.reduce((a, b) => Math.min(a, b), 0), values.reduce((a, b) => Math.max(a, b), 0)];
  };
  const [[left, right], [low, high]] = [ends(0), ends(1)];
  const box = { left: 46, right: width - 8, top: 8, bottom: 118 };
  const x = (value) => box.left + (value - left) / (right - left || 1) * (box.right - box.left);
  const y = (value) => box.bottom - (value - low) / (high - low || 1) * (box.bottom - box.top);
  made.lineWidth = 1;
  for (const tick of ticks(low, high)) {
    made.globalAlpha = 0.18;
    made.strokeRect(box.left, y(tick), box.right - box.left, 0);
    made.globalAlpha = 1;
    made.textAlign = "right";
    made.fillText(short(tick), box.left - 5, y(tick) + 4);
  }
  made.textAlign = "center";
  for (const tick of ticks(left, right)) made.fillText(short(tick), x(tick), box.bottom + 15);
  made.fillText(chart.across, (box.left + box.right) / 2, box.bottom + 31);
  made.textAlign = "left";
  chart.lines.forEach((line, index) => {
    const row = box.bottom + 48 + 16 * index;
    made.strokeStyle = COLOURS[index % COLOURS.length];
    made.lineWidth = line.markers ? 1.4 : 2;
    made.setLineDash(line.markers ? [] : DASHES[index % DASHES.length]);
    if (line.markers) {
      line.points.forEach(([a, b]) => marker(made, index, x(a), y(b)));
      marker(made, index, box.left + 10, row - 4);
    } else {
      for (const points of [line.points.map(([a, b]) => [x(a), y(b)]),
        [[box.left, row - 4], [box.left + 22, row - 4]]]) {
        made.beginPath();
        points.forEach(([a, b]) => made.lineTo(a, b));
        made.stroke();
      }
    }
    made.fillText(line.name, box.left + 30, row);
  });
  made.setLineDash([]);
  made.lineWidth = 1;
  made.strokeStyle = ink;
  made.strokeRect(x(Math.min(right, Math.max(left, at))), box.top, 0, box.bottom - box.top);
}
