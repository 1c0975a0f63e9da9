// Shows a runbook inside the page: its elements are made again, and only those that a runbook needs.

import { element } from "./build.js";

const ALLOWED = new Set(["H1", "H2", "H3", "H4", "P", "UL", "OL", "LI", "CODE", "PRE", "EM", "STRONG", "BLOCKQUOTE", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "BR", "HR"]);

function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const children = [...node.childNodes].map(copy).filter((child) => child !== null);
  if (node.tagName === "A" && /^[a-z0-9-]+$/.test(node.getAttribute("href") ?? "")) {
    return element("a", { attributes: { href: `../runbooks/${node.getAttribute("href")}` }, children });
  }
  return element(ALLOWED.has(node.tagName) ? node.tagName.toLowerCase() : "span", { children });
}

export function runbook(name) {
  if (!name) return null;
  const details = element("details", { children: [element("summary", { text: `Runbook ${name}` })] });
  details.addEventListener("toggle", async () => {
    if (!details.open || details.children.length > 1) return;
    const place = element("div", { classes: "runbook", text: "Loading…" });
    details.append(place);
    try {
      const answer = await fetch(`../runbooks/${encodeURIComponent(name)}`);
      if (!answer.ok) throw new Error(answer.status === 404 ? `There is no page ${name} in this installation.` : `Airflow answered ${answer.status}.`);
      const read = new DOMParser().parseFromString(await answer.text(), "text/html");
      place.replaceChildren(...[...read.querySelector("main").childNodes].map(copy).filter((child) => child !== null));
    } catch (problem) {
      place.textContent = problem.message;
    }
  });
  return details;
}
