import { expect, test } from "vitest";
import { refusalWord, storeFault } from "../../src/base/store-fault.js";

/** As ioredis has them of Redis. */
const refusal = (message: string): Error => Object.assign(new Error(message), { name: "ReplyError" });
const unavailable = { code: "store_unavailable" };

test.each([
  "READONLY You can't write against a read only replica. script: 1b9e, on @user_script:3.",
  "LOADING Redis is loading the dataset in memory",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "CLUSTERDOWN The cluster is down",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  // Redis 6.
  "ERR Error running script (call to f_6b1bf486): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
])("%s is the store's trouble", (message) => {
  expect(storeFault(refusal(message))).toMatchObject(unavailable);
});

test("so is whatever happens to a connection", () => {
  expect(storeFault(new Error("Connection is closed."))).toMatchObject(unavailable);
});

test.each(["ERR unknown command", "WRONGTYPE Operation against a key", "NOSCRIPT No matching script.", "ERR user_script:3: no move from idle to gone"])("%s is not", (message) => {
  const fault = refusal(message);
  expect(storeFault(fault)).toBe(fault);
  expect(refusalWord(fault)).toBe(message.split(" ")[0]);
});
