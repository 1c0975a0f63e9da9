// Pieces of HTML that the server makes: put into the page and read again; what is open stays open, and the focus stays.

const nameOf = (details) => details.id || details.parentElement.id;

function focusedIn(place) {
  const found = place.contains(document.activeElement) ? document.activeElement : null;
  if (found === null) return null;
  if (found.tagName === "SUMMARY") return { details: nameOf(found.parentElement) };
  if (found.tagName === "A") return { selector: `a[href="${found.getAttribute("href")}"]` };
  const figure = found.closest("figure");
  return figure ? { selector: `#${figure.id} svg` } : null;
}

// The server has escaped every text. Nodes are made without running anything, and the policy lets no inline script run.
function put(place, text, prepare) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const open = new Set([...place.querySelectorAll("details[open]")].map(nameOf));
  const focused = focusedIn(place);
  const scrolled = place.querySelector(".batches")?.scrollTop ?? 0;
  place.replaceChildren(...[...fresh.body.childNodes].map((node) => document.importNode(node, true)));
  prepare(place);
  const all = [...place.querySelectorAll("details")];
  for (const one of all) one.open = open.has(nameOf(one));
  if (scrolled) place.querySelector(".batches")?.scrollTo(0, scrolled);
  if (focused === null) return;
  const again = focused.details ? all.find((one) => nameOf(one) === focused.details)?.querySelector("summary") : place.querySelector(focused.selector);
  again?.focus({ preventScroll: true });
}

export function keepShown(id, address, everyMs, prepare = () => {}) {
  const place = document.getElementById(id);
  const news = document.getElementById(`${id}-news`);
  let shown = null;
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(address);
      const text = await answer.text();
      if (!answer.ok) throw new Error(answer.status === 400 ? "there is no such period" : `Airflow answered ${answer.status}`);
      if (text !== shown) put(place, text, prepare);
      shown = text;
      news.textContent = "";
    } catch (problem) {
      news.textContent = `This is not read again: ${problem.message}.`;
    }
  };
  const again = async () => {
    await look();
    setTimeout(again, everyMs);
  };
  document.addEventListener("visibilitychange", look);
  again();
}
