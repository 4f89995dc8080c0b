// The scene: points as shaded spheres, the edges of the bounds and solids, by WebGL.

const scene = element("scene");
const gl = scene.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });

const VERTEX = `
attribute vec3 position;
attribute float value;
uniform mat4 camera;
uniform float size, pixels, slice;
uniform vec2 range;
varying float share;
void main() {
  share = value;
  gl_Position = camera * vec4(position, 1.0);
  gl_PointSize = max(1.0, size * pixels / gl_Position.w);
  bool hidden = value < range.x - 1e-6 || value > range.y + 1e-6 || gl_Position.w < slice;
  if (hidden) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); }
}`;
// The map is viridis, by the polynomials of Matt Zucker (CC0).
const TERMS = [[0.2777, 0.0054, 0.3341], [0.1051, 1.4046, 1.3846], [-0.3309, 0.2148, 0.0951],
  [-4.6342, -5.7991, -19.3324], [6.2283, 14.1799, 56.6906], [4.7764, -13.7451, -65.3530],
  [-5.4355, 4.6459, 26.3124]];
const vec3 = (term) => `vec3(${term.map((one) => one.toFixed(4)).join(",")})`;
const FRAGMENT = `
precision mediump float;
varying float share;
uniform float plain;
uniform vec3 ink;
vec3 viridis(float t) {
  return ${TERMS.map(vec3).reduceRight((all, term) => `${term} + t * (${all})`)};
}
void main() {
  if (plain > 0.5) { gl_FragColor = vec4(ink, 1.0); return; }
  vec2 from = 2.0 * gl_PointCoord - 1.0;
  float r2 = dot(from, from);
  if (r2 > 1.0) { discard; }
  float light = 0.7 + 0.3 * sqrt(1.0 - r2);
  gl_FragColor = vec4(clamp(viridis(share), 0.0, 1.0) * light, 1.0);
}`;

function viridis(t) {
  const sum = [0, 1, 2].map((axis) => TERMS.reduceRight((all, term) => all * t + term[axis], 0));
  return `rgb(${sum.map((one) => Math.round(255 * Math.min(1, Math.max(0, one)))).join(",")})`;
}

function program() {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) {
      throw new Error(gl.getShaderInfoLog(shader));
    }
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "position");
  gl.bindAttribLocation(made, 1, "value");
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  gl.useProgram(made);
  return made;
}

// Matrices stand column by column.
const times = (a, b) => a.map((_, at) => {
  const column = at >> 2, row = at & 3;
  return [0, 1, 2, 3].reduce((sum, k) => sum + a[4 * k + row] * b[4 * column + k], 0);
});

// Points of a plane are looked at from above.
const START = about.flat
  ? { turn: 0, tilt: Math.PI / 2, distance: 1.6 }
  : { turn: 0.45, tilt: 0.45, distance: 2.15 };
let view = { ...START };
let uniforms, buffers;

function camera(width, height) {
  const focal = 1.8, near = 0.01 * radius, far = 12 * radius;
  const narrow = Math.min(1, width / height);
  const projection = [focal * narrow * height / width, 0, 0, 0, 0, focal * narrow, 0, 0,
    0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
  const [s, c] = [Math.sin(view.turn), Math.cos(view.turn)];
  const [p, q] = [Math.sin(view.tilt), Math.cos(view.tilt)];
  // z is up.
  const up = [c, s * p, -s * q, 0, -s, c * p, -c * q, 0, 0, q, p, 0, 0, 0, 0, 1];
  const back = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, -view.distance * radius, 1];
  return { matrix: times(projection, times(back, up)), pixels: focal * narrow * height / 2 };
}

/// The corners of the faces of a box, each face two triangles, with the axis of the face.
function faces([low, high]) {
  return [0, 1, 2].flatMap((axis) => [0, 1].map((end) => {
    const corner = (a, b) => {
      const at = [0, 0, 0];
      at[axis] = end;
      at[(axis + 1) % 3] = a;
      at[(axis + 2) % 3] = b;
      return at.map((far, axis) => (far ? high : low)[axis] - middle[axis]);
    };
    const around = [[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]];
    return around.flatMap(([a, b]) => corner(a, b));
  }));
}

/// The ends of the edges of a box.
function edges([low, high]) {
  const ends = [];
  for (let axis = 0; axis < 3; axis++) {
    for (let other = 0; other < 4; other++) {
      for (const end of [0, 1]) {
        const at = [0, 0, 0];
        at[axis] = end;
        at[(axis + 1) % 3] = other & 1;
        at[(axis + 2) % 3] = other >> 1;
        ends.push(...at.map((far, axis) => (far ? high : low)[axis] - middle[axis]));
      }
    }
  }
  return ends;
}

function fill(buffer, numbers) {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, numbers, gl.DYNAMIC_DRAW);
}

function beginScene() {
  if (!gl) throw new Error("this browser has no WebGL");
  const made = program();
  uniforms = {};
  for (const name of ["camera", "size", "pixels", "slice", "range", "plain", "ink"]) {
    uniforms[name] = gl.getUniformLocation(made, name);
  }
  buffers = { lines: gl.createBuffer(), solids: gl.createBuffer() };
  Object.assign(buffers, { positions: gl.createBuffer(), values: gl.createBuffer() });
  const lines = [about.bounds, ...about.solids].flatMap(edges);
  fill(buffers.lines, new Float32Array(lines));
  buffers.ends = lines.length / 3;
  fill(buffers.solids, new Float32Array(about.solids.flatMap((solid) => faces(solid).flat())));
  gl.enableVertexAttribArray(0);
  gl.enable(gl.DEPTH_TEST);
}

/// Gives the frame to be drawn to the GPU.
function upload(frame, quantity) {
  const shares = Float32Array.from(frame.values[quantity], (word) => word / about.last);
  fill(buffers.positions, frame.positions);
  fill(buffers.values, shares);
}

const rgb = (text) => text.match(/\d+/g).slice(0, 3).map((one) => one / 255);

function drawPlain(buffer, mode, first, count, colour) {
  gl.uniform1f(uniforms.plain, 1);
  gl.uniform1f(uniforms.slice, -1e9);
  gl.uniform2f(uniforms.range, -1, 2);
  gl.uniform3fv(uniforms.ink, colour);
  gl.disableVertexAttribArray(1);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  gl.drawArrays(mode, first, count);
}

function drawScene(frame, { size, slice, from, to }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [scene.clientWidth, scene.clientHeight]
    .map((one) => Math.max(1, Math.round(one * ratio)));
  if (scene.width !== width || scene.height !== height) {
    [scene.width, scene.height] = [width, height];
  }
  const style = getComputedStyle(document.body);
  const { matrix, pixels } = camera(width, height);
  gl.viewport(0, 0, width, height);
  gl.clearColor(...rgb(style.backgroundColor), 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.uniformMatrix4fv(uniforms.camera, false, matrix);
  gl.uniform1f(uniforms.size, 2 * 0.62 * frame.spacing * size);
  gl.uniform1f(uniforms.pixels, pixels);
  gl.uniform1f(uniforms.slice, slice === 1 ? -1e9 : (view.distance + 1 - 2 * slice) * radius);
  gl.uniform2f(uniforms.range, from, to);
  gl.uniform1f(uniforms.plain, 0);
  gl.enableVertexAttribArray(1);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffers.positions);
  gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, buffers.values);
  gl.vertexAttribPointer(1, 1, gl.FLOAT, false, 0, 0);
  gl.drawArrays(gl.POINTS, 0, frame.points);
  // Six faces of two triangles each; those of an axis have one shade.
  for (let face = 0; face < 6 * about.solids.length; face++) {
    const shade = [0.5, 0.42, 0.6][(face >> 1) % 3];
    drawPlain(buffers.solids, gl.TRIANGLES, 6 * face, 6, [shade, shade, shade * 1.04]);
  }
  drawPlain(buffers.lines, gl.LINES, 0, buffers.ends, rgb(style.color));
}

/// The share of the picture that is coloured, for tests.
function colouredShare() {
  const pixels = new Uint8Array(4 * scene.width * scene.height);
  gl.readPixels(0, 0, scene.width, scene.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  let drawn = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    if ([1, 2].some((at) => Math.abs(pixels[i + at] - pixels[i]) > 24)) drawn++;
  }
  return drawn / (scene.width * scene.height);
}
