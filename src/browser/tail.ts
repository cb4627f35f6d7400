import type { Readable } from "node:stream";

const kept = 20;
const lineLimitBytes = 2_000;
/**
 * Chromium without a D-Bus or a GPU reports that many times at each launch; these lines would hide those that
 * matter.
 */
const noise =
  /dbus\/(bus|object_proxy)\.cc|media\/gpu\/vaapi|bluez_dbus_manager|sandbox_linux\.cc.*multiple threads/;

/** The last lines a stream has carried. */
export function lastLinesOf(stream: Readable): () => readonly string[] {
  let lines: string[] = [];
  let rest = "";
  const keep = (text: string): void => {
    const parts = (rest + text).split("\n");
    rest = (parts.pop() ?? "").slice(0, lineLimitBytes);
    const worth = parts.filter((line) => line.trim() !== "" && !noise.test(line));
    lines = [...lines, ...worth.map((line) => line.slice(0, lineLimitBytes))].slice(-kept);
  };
  stream.setEncoding("utf8").on("data", keep);
  stream.on("error", () => {});
  return () => (rest.trim() === "" ? lines : [...lines, rest].slice(-kept));
}
