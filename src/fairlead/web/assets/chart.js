// Small charts of one rollout: the canary's share, and what both versions did with their
// requests. Drawn as SVG by hand, four rows on one axis of time; told as a table as well.
// The page has signs already; their namespace is the one to draw in.
const SVG = document.querySelector("svg").namespaceURI;
const LEFT = 48;
const RIGHT = 8;
const ROW = 84;
const EVERY = 2000;
const LONGEST = 3600 * 1000;
const SLOTS = ["primary", "canary"];
// As wide as its place, so that letters keep their size on a phone.
let width = 640;
const KINDS = [
  { title: "Success rate", unit: "%", of: success, all: success,
    range: (values) => [Math.min(95, Math.floor(Math.min(...values))), 100] },
  { title: "Slowest 1 % (p99)", unit: "ms", of: (p) => p.p99_ms, range: (values) => [0, nice(Math.max(...values))] },
  { title: "Requests", unit: "/s", of: (p) => p.rate, range: (values) => [0, nice(Math.max(...values))] },
];

function watchNumbers(place) {
  const kept = { points: [], recorded: null, missed: false };
  const path = () => told().name.split("/").map(encodeURIComponent).join("/");
  const told = () => JSON.parse(place.dataset.drawn);

  async function ask() {
    if (document.hidden) return;
    const last = kept.points.at(-1);
    const since = last ? "?since=" + encodeURIComponent(last.at) : "";
    try {
      const answer = await fetch(`/api/v1/rollouts/${path()}/numbers${since}`);
      kept.missed = !answer.ok;
      if (answer.ok) {
        const more = await answer.json();
        kept.recorded = more.recorded;
        kept.points.push(...more.items);
      }
    } catch {
      kept.missed = true;
    }
    draw();
  }

  function draw() {
    width = Math.max(place.clientWidth, 240);
    const drawn = told();
    const frame = span(drawn, kept.points);
    const points = rated(kept.points).filter((p) => p.time >= frame.from && p.time <= frame.to);
    const rows = [];
    if (drawn.weights.length) rows.push(shareRow(drawn, frame));
    for (const kind of KINDS) {
      const row = numberRow(kind, points, frame, drawn);
      if (row) rows.push(row);
    }
    if (rows.length) rows.push(axis(frame));
    place.replaceChildren(...rows, ...note(kept, points), ...table(points, drawn));
  }

  document.addEventListener("fairlead:fresh", draw);
  document.addEventListener("visibilitychange", ask);
  new ResizeObserver(() => { if (place.clientWidth !== width) draw(); }).observe(place);
  setInterval(ask, EVERY);
  draw();
  ask();
}

function span(drawn, points) {
  const times = points.map((p) => Date.parse(p.at));
  const ended = drawn.ended ? Date.parse(drawn.ended) : null;
  const fresh = times.length && (!ended || times.at(-1) > ended) ? times.at(-1) : 0;
  const to = Math.max(ended ? ended + 15000 : Date.now(), fresh);
  const began = drawn.started ? Date.parse(drawn.started) - 15000 : (times[0] ?? to - 60000);
  return { from: Math.max(Math.min(began, to - 30000), to - LONGEST), to };
}

// Requests a second, from the time since the slot's point before.
function rated(points) {
  const before = {};
  return points.map((point) => {
    const time = Date.parse(point.at);
    const seconds = before[point.slot] ? (time - before[point.slot]) / 1000 : null;
    before[point.slot] = time;
    return { ...point, time, rate: seconds ? point.requests / seconds : null };
  });
}

function shareRow(drawn, frame) {
  const y = (share) => 8 + (ROW - 16) * (1 - share / 100);
  const marks = drawn.weights.map(([at, share]) => [Date.parse(at), share]);
  let path = "";
  let share = 0;
  for (const [time, next] of [[frame.from, 0], ...marks, [frame.to, marks.at(-1)[1]]]) {
    const x = across(Math.max(time, frame.from), frame);
    path += `${path ? "L" : "M"}${x} ${y(share)}L${x} ${y(next)}`;
    share = next;
  }
  const last = marks.at(-1)[1];
  const label = `Canary's share over time; now ${last} %`;
  const row = chart("Canary's share", label, [["canary", drawn.canary, `${last} %`]]);
  grid(row.svg, [0, 50, 100].map((value) => [y(value), `${value} %`]));
  const edge = across(frame.to, frame);
  row.svg.append(
    shape("path", { class: "area canary", d: `${path}L${edge} ${y(0)}L${LEFT} ${y(0)}Z` }),
    shape("path", { class: "line canary", d: path }),
  );
  return row.figure;
}

function numberRow(kind, points, frame, drawn) {
  const series = SLOTS.map((slot) => points
    .filter((p) => p.slot === slot).map((p) => [p.time, kind.of(p)]));
  const values = series.flat().map(([, value]) => value).filter((value) => value !== null);
  if (!values.length) return null;
  const [low, high] = kind.range(values);
  const y = (value) => 8 + (ROW - 16) * (1 - (value - low) / (high - low || 1));
  const text = (slot, n) => (drawn.ended && kind.all
    ? inAll(points.filter((p) => p.slot === slot), kind)
    : lastOf(series[n], kind.unit));
  const said = SLOTS.map((slot, n) => [slot, drawn[slot], text(slot, n)]).filter((each) => each[2]);
  const label = `${kind.title}: ` + said.map(([, name, text]) => `${name} ${text}`).join(", ");
  const row = chart(kind.title, label, said);
  grid(row.svg, [low, (low + high) / 2, high].map((v) => [y(v), `${short(v)} ${kind.unit}`]));
  series.forEach((pairs, n) => {
    row.svg.append(shape("path", { class: `line ${SLOTS[n]}`, d: line(pairs, frame, y) }));
  });
  return row.figure;
}

// A gap where there was no request: a line across it would say what nobody measured.
function line(pairs, frame, y) {
  let path = "";
  let pen = "M";
  for (const [time, value] of pairs) {
    if (value !== null) path += `${pen}${across(time, frame)} ${y(value).toFixed(1)}`;
    pen = value === null ? "M" : "L";
  }
  return path;
}

function chart(title, label, said) {
  const figure = make("figure");
  const caption = make("figcaption", title);
  for (const [slot, name, text] of said) {
    const key = make("span", `${name} `);
    key.className = `key ${slot}`;
    key.append(make("b", text));
    caption.append(key);
  }
  const svg = shape("svg", { viewBox: `0 0 ${width} ${ROW}`, role: "img", "aria-label": label });
  figure.append(caption, svg);
  return { figure, svg };
}

function grid(svg, lines) {
  for (const [y, text] of lines) {
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
    const label = shape("text", { class: "tick", x: LEFT - 6, y: y + 3.5, "text-anchor": "end" });
    label.textContent = text;
    svg.append(label);
  }
}

function axis(frame) {
  const svg = shape("svg", { viewBox: `0 0 ${width} 16`, "aria-hidden": "true", class: "axis" });
  const parts = width < 480 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const part of parts) {
    const time = frame.from + part * (frame.to - frame.from);
    const anchor = part === 1 ? "end" : part ? "middle" : "start";
    const text = shape("text", { class: "tick", x: across(time, frame), y: 11, "text-anchor": anchor });
    text.textContent = new Date(time).toLocaleTimeString([], { hour12: false });
    svg.append(text);
  }
  return svg;
}

function note(kept, points) {
  let text = "";
  if (kept.missed) text = "The numbers could not be read; they are asked for again.";
  else if (kept.recorded === false) text = "Nobody records requests here; the checks tell what was measured.";
  else if (kept.recorded && !points.length) text = "No request was seen in this time.";
  if (!text) return [];
  const said = make("p", text);
  said.className = "quiet";
  return [said];
}

function table(points, drawn) {
  if (!points.length) return [];
  const details = make("details");
  details.open = document.querySelector("#chart details")?.open ?? false;
  const body = make("table");
  const heads = ["At", "Version", "Share", "Requests", "Failed", "p50", "p99"];
  body.append(rowOf("th", heads));
  for (const p of points.slice(-20).reverse()) {
    const at = new Date(p.time).toLocaleTimeString([], { hour12: false });
    const times = [p.p50_ms, p.p99_ms].map((ms) => (ms === null ? "" : `${short(ms)} ms`));
    body.append(rowOf("td", [at, drawn[p.slot] || p.revision, `${p.share} %`, p.requests, p.failed, ...times]));
  }
  details.append(make("summary", "The latest numbers as a table"), body);
  return [details];
}

function rowOf(cell, texts) {
  const row = make("tr");
  row.append(...texts.map((text) => make(cell, text)));
  return row;
}

function across(time, frame) {
  const part = (time - frame.from) / (frame.to - frame.from);
  return (LEFT + part * (width - LEFT - RIGHT)).toFixed(1);
}

function lastOf(pairs, unit) {
  const value = pairs.findLast(([, each]) => each !== null)?.[1];
  return value === undefined ? "" : `${short(value)} ${unit}`;
}

// Of a run that is over, its last moment says little: all of its requests do.
function inAll(points, kind) {
  const sum = (field) => points.reduce((total, p) => total + p[field], 0);
  const value = kind.all({ requests: sum("requests"), failed: sum("failed") });
  return value === null ? "" : `${short(value)} ${kind.unit} in all`;
}

function success(point) {
  return point.requests ? 100 * (1 - point.failed / point.requests) : null;
}

function short(value) {
  return Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)).toString();
}

function nice(most) {
  const size = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 4, 5, 10].map((step) => step * size).find((value) => value >= most) || 1;
}

function make(name, text) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  return element;
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
