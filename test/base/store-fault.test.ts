import { AssertionError } from "node:assert";
import { expect, test } from "vitest";
import { TimeLimitReached } from "../../src/base/deadline.js";
import { RemudaError } from "../../src/base/errors.js";
import { refusalWord, storeFault } from "../../src/base/store-fault.js";

/** The error that ioredis makes of a refusal of Redis. */
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

test.each([
  Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), {
    code: "ECONNREFUSED",
    syscall: "connect",
  }),
  new AggregateError([], "connect failed"),
  new TimeLimitReached("adding jobs", 100),
])("%s is a connection's", (fault) => expect(storeFault(fault)).toMatchObject(unavailable));

test.each([
  new TypeError("Cannot read properties of undefined"),
  new RangeError("Invalid string length"),
  new ReferenceError("x is not defined"),
  new SyntaxError("Unexpected end of JSON input"),
  new AssertionError({ message: "never" }),
  new RemudaError("name_taken"),
  "no error at all",
])("a mistake of ours is not, nor what is said already: %s", (fault) =>
  expect(storeFault(fault)).toBe(fault),
);

test.each([
  "ERR unknown command",
  "WRONGTYPE Operation against a key",
  "NOSCRIPT No matching script.",
  "ERR user_script:3: no move from idle to gone",
])("%s is not", (message) => {
  const fault = refusal(message);
  expect(storeFault(fault)).toBe(fault);
  expect(refusalWord(fault)).toBe(message.split(" ")[0]);
});
