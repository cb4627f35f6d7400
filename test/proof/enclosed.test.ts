import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { enclosed } from "./enclosed.js";

/** What an ordinary user does as root of a user namespace. */
const asRoot = process.getuid?.() === 0 ? [] : ["unshare", "--user", "--map-root-user", "--"];
const link = `rmd${process.pid}`;
const seconds = `${40_000 + process.pid}.5`;

/** The command lines of processes that name the time: of the sleepers, and of who has started them. */
const commandLines = (): readonly string[] =>
  readdirSync("/proc").flatMap((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.includes(seconds) ? [line] : [];
    } catch {
      return [];
    }
  });
const sleepers = (): readonly string[] => commandLines().filter((line) => line === `sleep\0${seconds}\0`);
const links = (): string => execFileSync("ip", ["-brief", "link"], { encoding: "utf8" });

test("processes, mounts and links of what is enclosed end when whoever started it is killed", async () => {
  const work = `mount -t tmpfs ${link} /mnt && ip link add ${link} type bridge && ip -brief link && grep -c ${link} /proc/self/mounts
    setsid sleep ${seconds} & sleep ${seconds} & echo begun; wait`;
  const command = [...asRoot, ...enclosed({ hasOwnNetwork: true }, "sh", "-c", work)];
  const starts = `const { spawn } = require("node:child_process");
    spawn(process.argv[1], process.argv.slice(2), { stdio: ["ignore", "inherit", "inherit"] });`;
  const starter = spawn(process.execPath, ["-e", starts, ...command], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void starter.kill("SIGKILL"));
  const said: string[] = [];
  for await (const line of createInterface(starter.stdout)) {
    said.push(line);
    if (line === "begun") break;
  }
  // The bridge and the mount are there, for what is enclosed alone.
  expect(said.join("\n")).toMatch(new RegExp(`^${link} [^]*\n1\nbegun$`, "m"));
  expect(links()).not.toContain(link);
  expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(link);
  await until("both asleep", () => sleepers().length === 2);
  const ended = once(starter, "exit");
  starter.kill("SIGKILL");
  await ended;
  await until("their end", async () => commandLines().length === 0);
});
