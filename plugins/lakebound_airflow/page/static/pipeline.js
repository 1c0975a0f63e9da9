// One pipeline: what is wrong and what to do, then how it runs.

import { badge, element, facts, problems, table } from "./build.js";
import { NEEDS, ago, duration, moment, number, share } from "./words.js";
import { refresh } from "./refresh.js";
import { runbook } from "./runbook.js";
import { showActions } from "./actions.js";
import { showCharts } from "./charts.js";
import { keepShown } from "./fragment.js";

const pipeline = decodeURIComponent(location.pathname.split("/").pop());
const drawn = new Map();

// A section is drawn again only when what it shows has changed: an open runbook stays open, and the focus stays.
function section(id, title, shown, draw) {
  const said = JSON.stringify(shown);
  let found = drawn.get(id);
  if (!found) {
    found = { said: null, place: element("section", { attributes: { "aria-labelledby": `head-${id}` } }) };
    drawn.set(id, found);
    document.getElementById("view").append(found.place);
  }
  if (found.said === said) return;
  found.said = said;
  const content = draw();
  found.place.hidden = content === null;
  if (content !== null) found.place.replaceChildren(element("h2", { text: title, attributes: { id: `head-${id}` } }), ...content);
}

// A fact that is a time of the last thirty years is said as one.
const said = ({ name, value }) => (typeof value === "number" && / at$|since$/.test(name) && value > 1e9 && value < 3e9 ? moment(value) : typeof value === "number" ? number(value) : String(value));

function wrong(one, details) {
  const head = element("p", { children: [badge(one.severity, one.severity), document.createTextNode(` ${one.what}`)] });
  const done = one.done ? element("p", { text: `Done already: ${one.done}` }) : null;
  const found = one.facts.length ? facts(one.facts.map((fact) => [fact.name, said(fact)])) : null;
  return element("div", { classes: "wrong", children: [head, element("p", { classes: "quiet", text: details }), found, done, runbook(one.runbook)] });
}

const tableLink = (name) => element("a", { text: name, attributes: { href: `${encodeURIComponent(pipeline)}/tables/${encodeURIComponent(name)}` } });

function now(view) {
  const { row, status } = view;
  const wanted = status.is_asked_for ? status.desired : "not started";
  const desired = status.desired_by ? `${wanted}, by ${status.desired_by}` : wanted;
  const said = [
    ["Needs you", badge(NEEDS[row.need], row.need)],
    ["Application", row.app + (row.outdated ? " (outdated)" : "")],
    ["Desired state", status.reason ? `${desired}: ${status.reason}` : desired],
    ["Lag", row.lag_records === null ? "–" : `${number(row.lag_records)} records`],
    ["Freshness", row.is_idle ? "idle: all has landed, and nothing came for a minute" : row.freshness_p99_seconds === null ? duration(row.freshness_seconds) : `${duration(row.freshness_p99_seconds)} (p99 of five minutes)`],
    ["Last commit", ago(row.last_commit_age_seconds)],
    ["Bad records", share(row.bad_share)],
  ];
  if (status.source) said.push(["Code", `${status.source.hash}${status.source.revision ? `, Git commit ${status.source.revision}` : ""}, since ${moment(status.source.since)}`]);
  const notes = status.notes.map((note) => element("li", { text: note }));
  return [facts(said), notes.length ? element("ul", { children: notes }) : null].filter(Boolean);
}

function show(view) {
  document.title = `${view.pipeline} – Lakebound`;
  document.getElementById("name").textContent = view.pipeline;
  showActions(view.actions, view.pipeline);
  const { progress, submission } = view;
  section("problems", "Cannot be read", view.problems, () => {
    if (!view.problems.length) return null;
    const list = element("ul", { classes: "problems" });
    problems(list, view.problems);
    return [list];
  });
  section("now", "Now", [view.row, view.status.notes, view.status.reason, view.status.source], () => now(view));
  section("alerts", "Open alerts", view.alerts, () => view.alerts.length
    ? view.alerts.map((alert) => wrong(alert, `since ${moment(alert.since)}`)) : [element("p", { classes: "quiet", text: "none" })]);
  // When a source looked is left out: it changes with each look, and would close an open runbook.
  const findings = view.findings.map(({ at, ...finding }) => finding);
  section("findings", "Findings", findings, () => findings.length
    ? findings.map((finding) => wrong(finding, `found by ${finding.source}; since ${moment(finding.since)}`)) : [element("p", { classes: "quiet", text: "none" })]);
  section("looked", "Last checks", view.looked, () => view.looked.length
    ? [facts(view.looked.map((one) => [one.source, moment(one.at)]))] : null);
  section("batch", "Last batch", progress && [progress.batch, progress.lane, progress.steps], () => progress?.steps.length ? [table(
    `Batch ${progress.batch ?? "–"}, lane ${progress.lane ?? "–"}: how long each step took.`,
    [{ title: "Step" }, { title: "Milliseconds", number: true }],
    progress.steps.map((step) => [step.step, number(Math.round(10 * step.milliseconds) / 10)]),
  )] : null);
  section("tables", "Tables", view.tables, () => view.tables.length ? [table(
    "The last commit of this application to each table. A table's name leads to its history, rewind targets and maintenance.",
    [{ title: "Table" }, { title: "Version" }, { title: "Committed" }, { title: "Commits", number: true }, { title: "Rows", number: true }],
    view.tables.map((one) => [tableLink(one.table), one.version, moment(one.committed_at), number(one.commits), number(one.rows)]),
  )] : null);
  section("schemas", "Schemas of the registry", view.schemas, () => view.schemas.lines.length ? [
    element("ul", { children: view.schemas.lines.map((line) => element("li", { text: line })) }),
    ...(view.schemas.columns.length ? [table(
      "What each column comes from: the subject, and the versions that have the field.",
      [{ title: "Column" }, { title: "Type" }, { title: "Subject" }, { title: "Since version", number: true }, { title: "Last version", number: true }],
      view.schemas.columns.map((one) => [one.name, one.type, one.subject, number(one.since), one.until === null ? "newest" : number(one.until)]),
    )] : []),
  ] : null);
  if (view.sees_values && document.getElementById("samples-section").hidden) {
    document.getElementById("samples-section").hidden = false;
    keepShown("samples", `../api/pipelines/${encodeURIComponent(pipeline)}/samples`, 30_000);
  }
  section("incidents", "Newest incidents", view.incidents, () => view.incidents.length
    ? view.incidents.map((one) => element("div", { classes: "wrong", children: [
        element("p", { children: [badge(one.kind.replaceAll("_", " "), "stopped"), document.createTextNode(` ${one.what}`)] }),
        element("p", { classes: "quiet", text: [moment(one.at), one.outcome, one.asked_by && `asked by ${one.asked_by}`, one.approved_by && `approved by ${one.approved_by}`].filter(Boolean).join("; ") }),
        runbook(one.runbook),
      ] })) : [element("p", { classes: "quiet", text: "none" })]);
  section("submission", "Last application", [submission, progress?.epoch], () => submission ? [facts([
    ["Application", submission.app_id], ["Backend", submission.backend], ["Machine", submission.host], ["Id at the backend", submission.remote_id],
    ["Submitted", moment(submission.submitted_at)], ["Epoch", progress?.epoch], ["Started by", submission.owner ? `${submission.owner.dag_id}, ${submission.owner.run_id}` : "not by Airflow"],
    ["Supervised by", submission.custody.replaceAll("_", " ")], ["Log", submission.log],
  ])] : null);
}

refresh(`../api/pipelines/${encodeURIComponent(pipeline)}`, show);
keepShown("ledger", `../api/pipelines/${encodeURIComponent(pipeline)}/ledger`, 10_000);
keepShown("quality", `../api/pipelines/${encodeURIComponent(pipeline)}/quality`, 30_000);
showCharts(pipeline);
