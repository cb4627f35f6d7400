import { rm } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { usualLimits } from "../../src/browser/resources/limits.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { fillDisk } from "../support/browser/full-disk.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot, seatClient } from "../support/node/one-slot.js";

let node: NodeBed;
let site: Site;
beforeEach(async () => {
  const limits = { ...usualLimits, maxScratchBytes: 96 * 2 ** 20 };
  [node, site] = await Promise.all([
    openNodeBed("full", { isReal: true, hostSettings: { limits } }),
    openSite(),
  ]);
});
afterEach(async () => {
  await node.close();
  await site.close();
});

test.runIf(process.getuid?.() === 0)(
  "a session whose disk is full goes on without a word to its clients where a profile is to be attached",
  async () => {
    const { pool, slot } = await oneSlot(node);
    const { lease } = await pool.lend();
    const cuts: string[] = [];
    expect(await seatClient(node, slot, { lease, cuts })).toBe(true);
    const client = new PipeClient(slot.chromium);
    const session = await client.attach();
    await client.open(`${site.origin}/`, session);
    await client.evaluate(`document.cookie = "held=1"`, session);
    const profile = { id: await node.assets.addProfile(), save: false };
    const attach = () => node.changeSession.change(slot, lease, { profile });
    const { pid, directories } = slot.chromium;
    const filler = await fillDisk(directories.downloads);
    expect(await attach()).toMatchObject({ isDone: false, code: "unavailable" });
    expect([slot.chromium.pid, slot.isEnding, cuts]).toEqual([pid, false, []]);
    expect(await client.evaluate("document.cookie", session)).toBe("held=1");
    await rm(filler);
    expect(await attach()).toEqual({ isDone: true });
    expect(slot.chromium.pid).not.toBe(pid);
  },
);
