// One table: its past and what a rewind can go back to, maintenance, files and validation. The server makes the content.

import { keepShown } from "./fragment.js";

const [pipeline, , table] = location.pathname.split("/").slice(-3).map(decodeURIComponent);

document.title = `${table} – Lakebound`;
document.getElementById("name").textContent = table;
const up = document.getElementById("up");
up.textContent = pipeline;
up.setAttribute("href", `../../${encodeURIComponent(pipeline)}`);
keepShown("table", `../../../api/pipelines/${encodeURIComponent(pipeline)}/tables/${encodeURIComponent(table)}`, 30_000);
