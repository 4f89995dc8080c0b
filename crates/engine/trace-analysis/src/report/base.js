
"use strict";
// What everything else uses: the data, numbers as text, colours, canvases, the tip.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Numbers as text.
function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === "inf" || value === Infinity) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(decimals, 6), useGrouping: true });
}
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const size = Math.abs(ms);
  if (size === 0) return "0 ms";
  if (size >= 1e4) return number(ms / 1e3, 4) + " s";
  if (size >= 0.1) return number(ms, 4) + " ms";
  return number(ms * 1e3, 3) + " µs";
}
// On axes, which have little room.
const axisTime = (ms) => (ms >= 1e3 ? number(ms / 1e3, 2) + " s" : duration(ms));
const percent = (part) => (part === null || part === undefined ? "–" : number(100 * part, 3) + " %");
function large(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, name] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(value) >= size) return number(value / size, 3) + name;
  }
  return number(value, 3);
}

// Colours of the theme; read anew when it changes.
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["page", "card", "ink", "quiet", "line", "band", "accent", "upload", "download", "exchange",
    "caller", "waiting", "idle", "mark", "hatch", "backend-0", "backend-1", "backend-2", "backend-3"];
  colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}
const backendColor = (backend) => (backend === "caller" ? colors.caller : colors["backend-" + (data.backends.indexOf(backend) % 4)]);
function trackName({ backend, phase, device }) {
  if (backend === "caller") return "host";
  return device ? backend + { compute: " kernels", upload: " copies in", download: " copies out" }[phase] : `${backend} ${phase}`;
}
const trackColor = (track) =>
  track.phase === "compute" ? backendColor(track.backend) : colors[track.phase];

// A canvas at the resolution of the screen, wiped.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return { context, width, height };
}

function tip(event, text) {
  const box = byId("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const [w, h] = [box.offsetWidth, box.offsetHeight];
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8)) + "px";
  box.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - h - 8)) + "px";
}

// Round values between two, about so many.
function ticks(low, high, about) {
  const raw = (high - low) / Math.max(1, about);
  if (!(raw > 0) || !isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}
function powers(low, high) {
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) found.push(10 ** k);
  return found;
}
