// The charts that the server draws: put into the page, read again, with the values under the pointer and as tables.

import { table } from "./build.js";
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

// The server has escaped every text. Nodes are made without running anything, and the policy lets no inline script run.
function put(place, text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const open = [...place.querySelectorAll("details[open]")].map((one) => one.parentElement.id || one.id);
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const [figure, link] = [focused?.closest("figure")?.id, focused?.getAttribute("href")];
  const isSummary = focused?.tagName === "SUMMARY";
  place.replaceChildren(...[...fresh.body.childNodes].map((node) => document.importNode(node, true)));
  for (const one of place.querySelectorAll("figure")) prepare(one);
  for (const one of place.querySelectorAll("details")) one.open = open.includes(one.parentElement.id || one.id);
  const again = figure ? place.querySelector(`#${figure} ${isSummary ? "summary" : "svg"}`) : link ? place.querySelector(`a[href="${link}"]`) : null;
  again?.focus({ preventScroll: true });
}

export function showCharts(pipeline) {
  const period = new URLSearchParams(location.search).get("period") ?? "1h";
  const shown = document.getElementById("charts");
  const news = document.getElementById("charts-news");
  const address = `../api/pipelines/${encodeURIComponent(pipeline)}/charts?period=${encodeURIComponent(period)}`;
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(answer.status === 400 ? "There is no such period." : `Airflow answered ${answer.status}.`);
      put(shown, await answer.text());
      news.textContent = "";
    } catch (problem) {
      news.textContent = `The charts are not read again: ${problem.message}`;
    }
  };
  const again = async () => {
    await look();
    setTimeout(again, EVERY_MS[period] ?? SELDOM_MS);
  };
  document.addEventListener("visibilitychange", look);
  again();
}
