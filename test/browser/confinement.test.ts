import { expect, test } from "vitest";
import { confined, type Tools } from "../../src/browser/confinement.js";

const tools: Tools = { setpriv: "setpriv", unshare: "unshare", nsenter: "nsenter" };
const network = "/proc/7/fd/21";
const mount = { source: "/s", target: "/t" };
const programs = (command: readonly string[]): string[] =>
  command.filter((word) => ["nsenter", "unshare", "setpriv", "mount", "browser"].includes(word));

test.each(["root", "user-namespace"] as const)("its network namespace is entered first, before any right is given up (mount by %s)", (by) => {
  const command = confined(tools, { uid: 200_000, mayGainRights: false, mount: { ...mount, by }, network }, ["browser"]);
  expect(command.slice(0, 3)).toEqual(["nsenter", "--net=/proc/7/fd/21", "--"]);
  expect(programs(command).lastIndexOf("nsenter")).toBe(0);
  expect(command.slice(-4)).toEqual(["--pdeathsig", "SIGKILL", "--", "browser"]);
});

test("where a network namespace cannot be entered there is no command to run, rather than one outside it", () => {
  const { nsenter: _, ...others } = tools;
  expect(() => confined(others, { uid: null, mayGainRights: false, network }, ["browser"])).toThrow("nsenter is not installed");
});

test("without other tools the network namespace is entered all the same", () => {
  expect(confined({ nsenter: "nsenter" }, { uid: null, mayGainRights: false, network }, ["browser"])).toEqual(["nsenter", "--net=/proc/7/fd/21", "--", "browser"]);
});
