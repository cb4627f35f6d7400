import { onTestFinished } from "vitest";
import { newRequestId, type RequestId } from "../../../src/base/ids.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../browser/chromium-host.js";

/** A connection of the test's own, closed after it. */
export async function openScriptStore(url: string, commandTimeoutMs: number): Promise<ScriptStore> {
  const options = { url, isCluster: false, connectTimeoutMs: 1000, commandTimeoutMs };
  const store = new ScriptStore(connectAlone(options), silentLog);
  onTestFinished(() => store.close());
  await store.open(new AbortController().signal);
  return store;
}

export const namesKey = "remuda:{test}:names";

/** Runs a script that writes: it reserves a name. */
export const reserveName = (store: ScriptStore, request: RequestId = newRequestId()) =>
  store.run("reserve-name", () => namesKey, {
    field: `pool:${request}`,
    owner: "one",
    partition: "000000000000",
    graceMs: 60_000,
    key: "",
    takesOver: "0",
  });
