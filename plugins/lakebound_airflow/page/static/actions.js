// Starts runs of Lakebound's DAGs by Airflow's own REST API, with the viewer's own session: Airflow decides, and logs who it was.

import { element } from "./build.js";

const ABOUT = {
  start: ["Start", "The application runs. This also ends a hold and a crash loop."],
  stop: ["Stop", "The application ends after the current batch and is not started again."],
  restart: ["Restart", "The application ends after the current batch and starts again with the current YAML and transform."],
  hold: ["Hold", "Like stop; only start or stop ends the hold."],
  prove: ["Prove", "Compares the tables' ledgers with Kafka. Nothing is written to a table."],
  recover: ["Plan a repair", "The doctor's repair is planned; nothing is applied before somebody approves the plan in Airflow, under Required Actions."],
};
const dialog = document.getElementById("ask");
let asked = null;
let names = "";

const say = (words) => { document.getElementById("answer").textContent = words; };

async function trigger(action) {
  const reason = document.getElementById("reason").value.trim();
  const conf = action.takes_reason && reason ? { ...action.conf, reason } : action.conf;
  say(`${ABOUT[action.name][0]}: asking Airflow…`);
  try {
    const answer = await fetch(`../../api/v2/dags/${encodeURIComponent(action.dag_id)}/dagRuns`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ logical_date: null, conf }),
    });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(typeof body.detail === "string" ? body.detail : `Airflow answered ${answer.status}`);
    say(`${ABOUT[action.name][0]}: Airflow has queued the run ${body.dag_run_id} of ${action.dag_id}.`);
  } catch (problem) {
    say(`${ABOUT[action.name][0]} was not started: ${problem.message}`);
  }
}

function ask(action, pipeline) {
  asked = action;
  document.getElementById("ask-head").textContent = `${ABOUT[action.name][0]}: ${pipeline}`;
  document.getElementById("ask-text").textContent = `${ABOUT[action.name][1]} Airflow runs the DAG ${action.dag_id}.`;
  document.getElementById("ask-reason").hidden = !action.takes_reason;
  document.getElementById("reason").value = "";
  document.getElementById("yes").textContent = ABOUT[action.name][0];
  dialog.showModal();
}

document.getElementById("no").addEventListener("click", () => dialog.close());
document.getElementById("yes").addEventListener("click", () => { dialog.close(); trigger(asked); });

export function showActions(actions, pipeline) {
  const known = actions.filter((action) => ABOUT[action.name]);
  document.getElementById("actions-section").hidden = known.length === 0;
  const now = known.map((action) => action.name).join(" ");
  if (now === names) return;  // the buttons stay, and the focus with them
  names = now;
  document.getElementById("actions").replaceChildren(...known.map((action) => {
    const button = element("button", { text: ABOUT[action.name][0], attributes: { type: "button" } });
    button.addEventListener("click", () => ask(action, pipeline));
    return button;
  }));
}
