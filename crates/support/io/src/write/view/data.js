// The frames: add() takes one while the page loads, frameAt() unpacks one when it is to be shown.

const element = (id) => document.getElementById(id);
const frames = [];
/// Unpacked frames, the one used last at the end.
const unpacked = new Map();
const MAX_UNPACKED_POINTS = 4e6;

/// A frame's head and its bytes, a text of base64, deflated.
function add(head, text) {
  frames.push({ head, bytes: Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)) });
  frameAdded();
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/// Positions and values of a frame. Positions are relative to the middle of the bounds.
function decode({ points, low, extent, cells }, bytes) {
  const positions = new Float32Array(3 * points);
  const size = cells.map((count, axis) => extent[axis] / count);
  let at = 0, point = 0, filled = 0;
  for (let cell = 0; point < points; cell++) {
    let count = 0, unit = 1, byte;
    do {
      byte = bytes[at++];
      count += (byte & 127) * unit;
      unit *= 128;
    } while (byte > 127);
    if (count === 0) continue;
    filled++;
    const row = Math.floor(cell / cells[0]);
    const corner = [cell % cells[0], row % cells[1], Math.floor(row / cells[1])];
    for (; count > 0; count--, point++) {
      for (let axis = 0; axis < 3; axis++) {
        positions[3 * point + axis] = low[axis] + corner[axis] * size[axis] - middle[axis];
      }
    }
  }
  for (let axis = 0; axis < 3; axis++) {
    // Half a step, because a place is rounded down.
    for (let i = 0; i < points; i++) {
      positions[3 * i + axis] += (bytes[at++] + 0.5) / about.steps * size[axis];
    }
  }
  const values = about.scales.map(() => {
    const words = new Uint16Array(points);
    let word = 0;
    for (let i = 0; i < points; i++) {
      const change = bytes[at + i] | bytes[at + points + i] << 8;
      word = word + (change >> 1 ^ -(change & 1)) & 65535;
      words[i] = word;
    }
    at += 2 * points;
    return words;
  });
  const long = size.filter((length) => length > 0);
  const room = long.reduce((all, length) => all * length, filled / points);
  return { points, positions, values, spacing: long.length ? room ** (1 / long.length) : 0 };
}

/// A frame, unpacked.
async function frameAt(index) {
  const known = unpacked.get(index);
  const frame = known ?? decode(frames[index].head, await inflate(frames[index].bytes));
  unpacked.delete(index);
  unpacked.set(index, frame);
  while (unpacked.size > 1 && unpacked.size * frame.points > MAX_UNPACKED_POINTS) {
    unpacked.delete(unpacked.keys().next().value);
  }
  return frame;
}

const middle = [0, 1, 2].map((axis) => (about.bounds[0][axis] + about.bounds[1][axis]) / 2);
const lengths = [0, 1, 2].map((axis) => about.bounds[1][axis] - about.bounds[0][axis]);
const radius = Math.hypot(...lengths) / 2 || 1;
