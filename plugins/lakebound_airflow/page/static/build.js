// Makes elements. Every value becomes a text node, never markup.

export function element(tag, { text, classes, attributes, children } = {}) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (classes) made.className = classes;
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  made.append(...(children ?? []).filter((child) => child !== null));
  return made;
}

export function badge(word, kind) {
  return element("span", { text: word, classes: `badge ${kind}` });
}

const SVG = "http" + "://www.w3.org/2000/svg";

// A line of the size of a word, in a box of 80 by 18.
export function spark(path, said) {
  const [svg, title, line] = ["svg", "title", "path"].map((tag) => document.createElementNS(SVG, tag));
  title.textContent = said;
  line.setAttribute("d", path);
  for (const [name, value] of Object.entries({ class: "spark", viewBox: "0 0 80 18", role: "img", "aria-label": said })) svg.setAttribute(name, value);
  svg.append(title, line);
  return svg;
}

// rows: arrays of texts or elements. columns: {title, number}.
export function table(caption, columns, rows) {
  const cell = (value, column) => element("td", {
    classes: column.number ? "number" : "",
    ...(value instanceof Node ? { children: [value] } : { text: value ?? "–" }),
  });
  const head = element("tr", { children: columns.map((column) => element("th", {
    text: column.title, classes: column.number ? "number" : "", attributes: { scope: "col" },
  })) });
  const body = rows.map((row) => element("tr", { children: row.map((value, place) => cell(value, columns[place])) }));
  return element("table", { children: [
    element("caption", { text: caption }), element("thead", { children: [head] }), element("tbody", { children: body }),
  ] });
}

export function facts(pairs) {
  const children = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) => [
    element("dt", { text: name }), element("dd", value instanceof Node ? { children: [value] } : { text: value }),
  ]);
  return element("dl", { classes: "facts", children });
}

export function problems(list, lines) {
  list.hidden = lines.length === 0;
  list.replaceChildren(...lines.map((line) => element("li", { text: line })));
}
