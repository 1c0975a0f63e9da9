// Numbers and times in words. What is not known is a dash.

const UNKNOWN = "–";

export const NEEDS = { now: "act now", today: "today", waits: "waiting", none: "well", stopped: "stopped" };

export function number(value) {
  return value === null || value === undefined ? UNKNOWN : value.toLocaleString("en");
}

export function share(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value > 0 && value < 0.001) return "< 0.1 %";
  return `${(100 * value).toFixed(1)} %`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function ago(seconds) {
  return seconds === null || seconds === undefined ? UNKNOWN : `${duration(Math.max(0, seconds))} ago`;
}

export function moment(epochSeconds) {
  if (!epochSeconds) return UNKNOWN;
  return `${new Date(1000 * epochSeconds).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
