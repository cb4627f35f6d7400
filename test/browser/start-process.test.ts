import { once } from "node:events";
import { readdirSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { type StartedBrowser, startProcess } from "../../src/browser/resources/start-process.js";

const pipes = ["ignore", "ignore", "pipe", "pipe", "pipe"] as const;
const start = (script: string): StartedBrowser => {
  const command = ["/bin/sh", "-c", script];
  const child = startProcess(command, { descriptors: pipes, env: { PATH: "/usr/bin:/bin", WORD: "given" } });
  if (child === undefined) throw new Error("nothing can be started here");
  return child;
};
const endOf = (child: StartedBrowser): Promise<unknown> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
const [input, output] = [3, 4];

test("it has its pipes, its environment, the root as its directory and a session of its own", async () => {
  const child = start('read line <&3; echo "$line $WORD $PWD $$ $(ps -o sid= -p $$)" >&4');
  const ended = endOf(child);
  (child.stdio[input] as Writable).write("said\n");
  const answer = (await text(child.stdio[output] as Readable)).trim().split(/ +/);
  expect(answer).toEqual(["said", "given", "/", `${child.pid}`, `${child.pid}`]);
  expect(await ended).toBe(0);
});

test("its end is told, by code and by signal, also where many end at once", async () => {
  expect(await endOf(start("exit 7"))).toBe(7);
  const many = Array.from({ length: 12 }, (_, at) =>
    endOf(start(at % 2 === 0 ? `exit ${at}` : "kill -KILL $$")),
  );
  expect(await Promise.all(many)).toEqual(many.map((_, at) => (at % 2 === 0 ? at : "SIGKILL")));
});

test("it ignores and holds no signal, whatever this process does", async () => {
  const child = start("grep -E 'Sig(Blk|Ign)' /proc/self/status >&2");
  const ended = endOf(child);
  const said = await text(child.stderr as Readable);
  expect(said.match(/[0-9a-f]{16}/g)).toEqual(["0".repeat(16), "0".repeat(16)]);
  await ended;
});

test("nothing stays open of one that has ended, or that could not be started", async () => {
  const open = (): number => readdirSync("/proc/self/fd").length;
  const throughout = async (count: number): Promise<void> => {
    const children = Array.from({ length: count }, () => start("exit 0"));
    const closed = children.flatMap(({ stdio }) =>
      stdio.flatMap((socket) => (socket === null ? [] : [once(socket as Readable, "close")])),
    );
    await Promise.all([...children.map(endOf), ...closed]);
  };
  await throughout(1);
  const before = open();
  await throughout(5);
  expect(() => startProcess(["/nowhere"], { descriptors: pipes, env: {} })).toThrow(
    expect.objectContaining({ code: "ENOENT" }),
  );
  expect(open()).toBe(before);
});

test("Node.js has to start what is looked for in PATH, and what is given a descriptor that would be overwritten", () => {
  expect(startProcess(["sh", "-c", "exit 0"], { descriptors: pipes, env: {} })).toBeUndefined();
  expect(startProcess(["/bin/sh"], { descriptors: ["ignore", 0], env: {} })).toBeUndefined();
});
