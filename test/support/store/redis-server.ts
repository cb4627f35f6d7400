import { bound } from "../bound.js";

/** The program of the tests' servers, such as a Valkey's (CONTRIBUTING.md). */
export const redisProgram = process.env["REMUDA_TEST_REDIS_SERVER"] ?? "redis-server";
/** Settings of every server of tests besides its own, as `--user …`. */
const more = (process.env["REMUDA_TEST_REDIS_ARGUMENTS"] ?? "").split(" ").filter((word) => word !== "");

/** The command of a server that ends with this process. */
export const redisServer = (...args: readonly string[]): readonly string[] =>
  bound(redisProgram, ...args, ...more);
