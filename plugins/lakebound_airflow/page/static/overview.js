// The table of all pipelines: filter and order stay while the data is read again, and so does the focus.

import { badge, element, problems, spark } from "./build.js";
import { NEEDS, ago, duration, number, share } from "./words.js";
import { refresh } from "./refresh.js";

const SEVERITIES = ["info", "warning", "critical"];
const needOrder = (row) => Object.keys(NEEDS).indexOf(row.need);
const COLUMNS = [
  { id: "need", title: "Needs you", value: null },
  { id: "pipeline", title: "Pipeline", value: (row) => row.pipeline },
  { id: "app", title: "Application", value: (row) => row.app },
  { id: "lag", title: "Lag", number: true, value: (row) => row.lag_records },
  { id: "freshness", title: "Freshness", number: true, value: (row) => freshness(row) },
  { id: "trend", title: "Last hour", value: (row) => sparks[row.pipeline]?.highest_seconds },
  { id: "commit", title: "Last commit", number: true, value: (row) => row.last_commit_age_seconds },
  { id: "bad", title: "Bad", number: true, value: (row) => row.bad_share },
  { id: "alerts", title: "Alerts", value: (row) => 1000 * (SEVERITIES.indexOf(row.worst_alert) + 1) + row.alerts },
  { id: "why", title: "Why", value: (row) => row.why },
];

const filter = document.getElementById("filter");
const need = document.getElementById("need");
const rowsByName = new Map();
let order = { id: "need", isDescending: false };
let latest = null;
let sparks = {};

const freshness = (row) => row.freshness_p99_seconds ?? row.freshness_seconds;

function remember() {
  try {
    sessionStorage.setItem("lakebound.overview", JSON.stringify({ filter: filter.value, need: need.value, order }));
  } catch { /* a browser that keeps nothing still shows the page */ }
}

function recall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem("lakebound.overview") ?? "{}");
    filter.value = kept.filter ?? "";
    need.value = kept.need ?? "";
    if (COLUMNS.some((column) => column.id === kept.order?.id)) order = kept.order;
  } catch { /* as above */ }
}

function heads() {
  return COLUMNS.map((column) => {
    const button = element("button", { text: column.title, attributes: { type: "button" } });
    button.addEventListener("click", () => {
      order = { id: column.id, isDescending: order.id === column.id && !order.isDescending };
      remember();
      draw();
    });
    return element("th", { classes: column.number ? "number" : "", attributes: { scope: "col", id: `by-${column.id}` }, children: [button] });
  });
}

function isShown(row) {
  const wanted = need.value === "person" ? ["now", "today"] : need.value ? [need.value] : null;
  if (wanted && !wanted.includes(row.need)) return false;
  const words = filter.value.trim().toLowerCase().split(/\s+/);
  const text = `${row.pipeline} ${row.app} ${row.desired} ${NEEDS[row.need]} ${row.why}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function ordered(rows) {
  const column = COLUMNS.find((one) => one.id === order.id);
  const sign = order.isDescending ? -1 : 1;
  if (column.value === null) return order.isDescending ? [...rows].reverse() : rows;  // as the server sorted them
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    const unknown = (a === null || a === undefined) - (b === null || b === undefined);
    if (unknown) return unknown;
    const found = typeof a === "string" ? a.localeCompare(b) : (a ?? 0) - (b ?? 0);
    return sign * found || needOrder(one) - needOrder(other) || one.pipeline.localeCompare(other.pipeline);
  });
}

function application(row) {
  const desired = row.desired === "running" ? "" : `desired: ${row.desired}`;
  return [row.app, desired, row.outdated ? "outdated" : ""].filter(Boolean).join(", ");
}

function texts(row) {
  return {
    lag: number(row.lag_records),
    freshness: row.is_idle ? "idle" : duration(freshness(row)),
    commit: ago(row.last_commit_age_seconds),
    bad: share(row.bad_share),
    app: application(row),
  };
}

// A row stays the same element while its pipeline is there, so that the focus stays, too.
function rowOf(row) {
  let found = rowsByName.get(row.pipeline);
  if (!found) {
    const link = element("a", { text: row.pipeline, attributes: { href: `pipelines/${encodeURIComponent(row.pipeline)}` } });
    const cells = Object.fromEntries(COLUMNS.map((column) => [column.id, element(column.id === "pipeline" ? "th" : "td", {
      classes: column.number ? "number" : column.id === "why" ? "why" : "",
      ...(column.id === "pipeline" ? { attributes: { scope: "row" }, children: [link] } : {}),
    })]));
    found = { line: element("tr", { children: COLUMNS.map((column) => cells[column.id]) }), cells };
    rowsByName.set(row.pipeline, found);
  }
  for (const [id, text] of Object.entries(texts(row))) found.cells[id].textContent = text;
  const line = sparks[row.pipeline];
  if (found.spark !== line) {
    found.spark = line;
    const said = line && `p99 of freshness in the last hour: highest ${duration(line.highest_seconds)}, latest ${duration(line.latest_seconds)}`;
    found.cells.trend.replaceChildren(...(line ? [spark(line.path, said)] : []));
  }
  found.cells.need.replaceChildren(badge(NEEDS[row.need], row.need));
  found.cells.alerts.replaceChildren(...(row.alerts ? [badge(`${row.alerts} ${row.worst_alert}`, row.worst_alert)] : []));
  found.cells.why.replaceChildren(element("span", { text: row.why, attributes: { title: row.why } }));
  return found.line;
}

function draw() {
  if (latest === null) return;
  const rows = ordered(latest.pipelines).filter(isShown);
  const body = document.getElementById("rows");
  const lines = rows.map(rowOf);
  if (lines.length !== body.children.length || lines.some((line, place) => body.children[place] !== line)) {
    const focused = document.activeElement;
    body.replaceChildren(...lines);
    if (focused && body.contains(focused)) focused.focus({ preventScroll: true });
  }
  for (const column of COLUMNS) {
    const head = document.getElementById(`by-${column.id}`);
    if (order.id === column.id) head.setAttribute("aria-sort", order.isDescending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  const count = (kind) => latest.pipelines.filter((row) => row.need === kind).length;
  document.getElementById("summary").textContent =
    `${latest.pipelines.length} pipelines: ${Object.keys(NEEDS).filter(count).map((kind) => `${count(kind)} ${NEEDS[kind]}`).join(", ")}`;
  const empty = document.getElementById("empty");
  empty.hidden = rows.length > 0;
  empty.textContent = latest.pipelines.length ? "No pipeline fits the filter." : "There is no pipeline that you may see.";
  problems(document.getElementById("problems"), latest.problems);
}

document.getElementById("heads").append(...heads());
recall();
for (const input of [filter, need]) input.addEventListener("input", () => { remember(); draw(); });
refresh("api/overview", (found) => {
  latest = found;
  const names = new Set(found.pipelines.map((row) => row.pipeline));
  for (const name of rowsByName.keys()) if (!names.has(name)) rowsByName.delete(name);
  draw();
});

const SPARKS_EVERY_MS = 60_000;

async function readSparks() {
  try {
    const answer = document.hidden ? null : await fetch("api/freshness");
    if (answer?.ok) sparks = await answer.json();
    draw();
  } catch { /* the table says when Airflow does not answer */ }
  setTimeout(readSparks, SPARKS_EVERY_MS);
}
readSparks();
