
// The summary of some of the steps, with the same keys and meanings as that of the trace.

function quantile(sorted, part) {
  const place = part * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place % 1);
}
function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [least, lower_quartile, median, upper_quartile, greatest] = [0, 0.25, 0.5, 0.75, 1].map((part) => quantile(sorted, part));
  return { least, lower_quartile, median, upper_quartile, greatest };
}
const sum = (values) => values.reduce((a, b) => a + b, 0);
// Calls `each` with every `stride` numbers of a flat list.
function strides(list, stride, each) {
  for (let at = 0; at < list.length; at += stride) each(...list.slice(at, at + stride));
}
const share = (part, whole) => (whole > 0 ? part / whole : null);

function summarizeSteps(first, last) {
  const rows = data.rows.slice(first, last + 1);
  const details = data.details.steps.slice(first, last + 1);
  const total_ms = sum(rows.map((row) => row.ms));
  const moved = (backend, which) => sum(details.map((step) => step.moved[backend][which])) / 1e3;
  const backends = {};
  data.backends.forEach((name, at) => {
    const [busy, waiting, idle] = [0, 1, 2].map((which) => sum(rows.map((row) => row.backends[at][which])));
    const transfers = moved(at, 0);
    backends[name] = {
      busy, waiting, idle, transfers, utilisation: share(busy, total_ms) || 0, overlap: share(moved(at, 1), transfers),
      idle_share: share(total_ms - busy, total_ms) || 0,
    };
  });
  const all = Object.values(backends);
  const imbalances = rows.filter((row) => !row.exploration && row.imbalance !== null).map((row) => row.imbalance);
  const hidden = sum(data.backends.map((_, at) => moved(at, 1)));
  const path = new Map();
  for (const step of details) strides(step.path, 2, (label, us) => path.set(label, (path.get(label) || 0) + us / 1e3));
  const path_ms = sum([...path.values()]);
  const parts = [...path].filter(([, ms]) => ms > 0).map(([label, ms]) => ({ what: data.details.labels[label], ms, share: share(ms, path_ms) }));
  return {
    steps: rows.length, total_ms, step_ms: spread(rows.map((row) => row.ms)), backends,
    imbalance: imbalances.length ? sum(imbalances) / imbalances.length : null,
    overlap: share(hidden, sum(all.map((backend) => backend.transfers))),
    critical_path_ms: path_ms, critical_path: parts.sort((a, b) => b.ms - a.ms),
    stages: summarizeStages(details), settle_steps: null, share: null, theta: null,
  };
}

function summarizeStages(details) {
  const sums = new Map();
  const known = (a, b) => (b < 0 ? a : (a || 0) + b);
  for (const step of details) {
    strides(step.stages, 6, (label, count, total, own, pairs, work) => {
      const one = sums.get(label) || { count: 0, total_ms: 0, self_ms: 0, each: [], pairs: null, work: null };
      one.count += count;
      one.total_ms += total / 1e3;
      one.self_ms += own / 1e3;
      one.each.push(total / 1e3);
      one.pairs = known(one.pairs, pairs);
      one.work = known(one.work, work);
      sums.set(label, one);
    });
  }
  const per = (ms, count) => (count ? ms / (count / 1e6) : null);
  return Object.fromEntries([...sums].map(([label, one]) => [data.details.labels[label], {
    ...one, per_step_ms: spread(one.each), ms_per_million_pairs: per(one.total_ms, one.pairs), ms_per_million_tests: per(one.total_ms, one.work),
  }]));
}

// Why a backend (or, by the number behind the last, all of them) did not compute in these steps:
// {cause, between, ms}, longest first; without a choice also between the steps.
function reasons(of, chosen) {
  const sums = new Map();
  const take = (list, between) => strides(list, 3, (cause, us) => {
    const key = cause + (between ? " between" : "");
    const one = sums.get(key) || { cause: data.details.causes[cause], between, ms: 0 };
    one.ms += us / 1e3;
    sums.set(key, one);
  });
  const steps = chosen ? data.details.steps.slice(chosen[0], chosen[1] + 1) : data.details.steps;
  for (const step of steps) take(step.idle[of], false);
  if (!chosen) take(data.details.between[of], true);
  return [...sums.values()].filter((one) => one.ms > 0).sort((a, b) => b.ms - a.ms);
}
