// Asks for the data every ten seconds while somebody looks, and says when it gets none.

const EVERY_MS = 10_000;
const REFUSED = { 401: "You are not logged in to Airflow any more; reload Airflow.", 403: "Your role may not see this.", 404: "There is no such pipeline." };

export function refresh(address, show) {
  const news = document.getElementById("news");
  let shownAt = null;
  let lastWords = "";

  const say = (words, isStale) => {
    if (words !== lastWords) news.textContent = words;  // a screen reader hears only what is new
    lastWords = words;
    news.className = isStale ? "stale" : "quiet";
  };

  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(REFUSED[answer.status] ?? `Airflow answered ${answer.status}.`);
      show(await answer.json());
      shownAt = new Date();
      say("Read again every 10 seconds.", false);
    } catch (problem) {
      const since = shownAt ? ` What is shown is of ${shownAt.toISOString().slice(11, 19)} UTC.` : "";
      say(`${problem.message || "Airflow does not answer."}${since}`, true);
    }
  };

  const again = async () => {
    await look();
    setTimeout(again, EVERY_MS);
  };
  document.addEventListener("visibilitychange", look);
  again();
  return look;
}
