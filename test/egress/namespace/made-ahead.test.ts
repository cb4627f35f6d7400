import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import {
  descriptors,
  findOnes,
  greeter,
  helpers,
  onlyHelper,
  openedSince,
} from "../../support/egress/namespaces.js";

describe("namespaces made ahead", () => {
  test("are there at once, as many as are to be spare, and more are made behind them", async () => {
    const found = await findOnes({ spare: 2 });
    const first = await found.openNamespace();
    const before = readlinkSync(first.namespace);
    const more = await Promise.all([found.openNamespace(), found.openNamespace(), found.openNamespace()]);
    expect(new Set([before, ...more.map(({ namespace }) => readlinkSync(namespace))]).size).toBe(4);
    for (const each of [first, ...more]) each.close();
    await found.close();
    expect(helpers()).toEqual([]);
  });

  test("are let go of when it closes, and none is made any more", async () => {
    const before = descriptors();
    const found = await findOnes({ spare: 3 });
    const taken = await found.openNamespace();
    await found.close();
    taken.close();
    await expect(found.openNamespace()).rejects.toThrow("no network namespaces are made any more");
    expect(helpers()).toEqual([]);
    await until("no descriptor left", () => openedSince(before).length === 0);
  });

  test.each(["SIGKILL", "SIGSTOP"] as const)(
    "are made by another helper when one got %s, and nobody who waits is told",
    async (signal) => {
      const found = await findOnes();
      (await found.openNamespace()).close();
      const pid = onlyHelper();
      process.kill(pid, signal);
      const opened = await found.openNamespace();
      expect(helpers()).not.toContain(`${pid}`);
      opened.close();
      await found.close();
      expect(helpers()).toEqual([]);
    },
  );

  test("are not begun anew where it closes while a helper does not answer", async () => {
    const found = await findOnes();
    (await found.openNamespace()).close();
    process.kill(onlyHelper(), "SIGSTOP");
    const refused = expect(found.openNamespace()).rejects.toThrow("stopping");
    await found.close();
    await refused;
    expect(helpers()).toEqual([]);
  });

  test("are not kept by the helper that made them, nor is what listened in them", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const found = await findOnes();
    const listened = async (): Promise<WeakRef<Server>> => {
      const opened = await found.openNamespace();
      const server = createServer();
      await opened.listen(server);
      const closed = once(server, "close");
      server.close();
      opened.close();
      await closed;
      return new WeakRef(server);
    };
    const ended = [await listened(), await listened(), await listened()];
    const kept = (): number => {
      collect();
      return ended.filter((each) => each.deref() !== undefined).length;
    };
    await expect.poll(kept, { timeout: 10_000 }).toBe(0);
    await found.close();
  });

  test("are made by a helper that knows nothing of its daemon", async () => {
    const server = greeter("a secret of the daemon's");
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const found = await findOnes();
    (await found.openNamespace()).close();
    const pid = `${onlyHelper()}`;
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .filter(Boolean)
      .map((entry) => entry.split("=")[0]);
    expect(environment.toSorted()).toEqual(["NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE"]);
    const mine = socketsOf("self");
    // The two ends of a channel are sockets of different names, so none is shared.
    expect(socketsOf(pid).filter((name) => mine.includes(name))).toEqual([]);
    await found.close();
  });
});

const socketsOf = (pid: string): string[] =>
  readdirSync(`/proc/${pid}/fd`)
    .flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        return [];
      }
    })
    .filter((link) => link.startsWith("socket:"));
