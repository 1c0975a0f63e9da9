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

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const power = Math.min(BYTES.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toPrecision(3)} ${BYTES[power]}`;
}

const ROUNDED = { maximumSignificantDigits: 4 };

// A value of a chart, by its unit.
export function measured(value, unit) {
  if (value === null || value === undefined) return UNKNOWN;
  if (unit === "seconds") return duration(value);
  if (unit === "share") return share(value);
  if (unit === "bytes") return bytes(value);
  return unit === "per_second" ? `${value.toLocaleString("en", ROUNDED)}/s` : number(value);
}
