// The charts that the server draws, with the values under the pointer and as tables.

import { table } from "./build.js";
import { keepShown } from "./fragment.js";
import { measured, moment } from "./words.js";

const EVERY_MS = { "15m": 10_000, "1h": 10_000, "6h": 60_000 };
const SELDOM_MS = 240_000;

function read(figure, series, at) {
  const values = series.lines.map((one) => `${one.name} ${measured(one.values[at], series.unit)}`);
  figure.querySelector(".readout").textContent = `${moment(series.times[at])}: ${values.join(", ")}`;
}

function place(figure, series, at) {
  const line = figure.querySelector(".pointer");
  const [left, right] = figure.querySelector("svg").dataset.plot.split(",").map(Number);
  const x = left + (Math.min(series.until, Math.max(series.since, series.times[at])) - series.since) / (series.until - series.since) * (right - left);
  for (const name of ["x1", "x2"]) line.setAttribute(name, x.toFixed(1));
  line.setAttribute("visibility", "visible");
  read(figure, series, at);
}

function prepare(figure) {
  const svg = figure.querySelector("svg");
  const series = JSON.parse(svg.dataset.series);
  const last = series.times.length - 1;
  let shown = Math.max(0, series.times.findLastIndex((_, at) => series.lines.some((one) => one.values[at] !== null)));
  read(figure, series, shown);
  svg.addEventListener("pointermove", (event) => {
    const [left, right] = svg.dataset.plot.split(",").map(Number);
    const box = svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - left) / (right - left);
    const wanted = series.since + share * (series.until - series.since);
    shown = Math.min(last, Math.max(0, Math.floor((wanted - series.times[0]) / (series.times[1] - series.times[0]))));
    place(figure, series, shown);
  });
  svg.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    shown = Math.min(last, Math.max(0, shown + steps));
    place(figure, series, shown);
  });
  const details = figure.querySelector("details");
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const columns = [{ title: "From (UTC)" }, ...series.lines.map((one) => ({ title: one.name, number: true }))];
    const rows = series.times.map((at, number) => [moment(at), ...series.lines.map((one) => measured(one.values[number], series.unit))]);
    details.append(table(figure.querySelector("figcaption").textContent, columns, rows.reverse()));
  });
}

export function showCharts(pipeline) {
  const period = new URLSearchParams(location.search).get("period") ?? "1h";
  const address = `../api/pipelines/${encodeURIComponent(pipeline)}/charts?period=${encodeURIComponent(period)}`;
  keepShown("charts", address, EVERY_MS[period] ?? SELDOM_MS, (place) => place.querySelectorAll("figure").forEach(prepare));
}
