import { afterEach, expect, test, vi } from "vitest";
import { verifyAudit } from "../../src/daemon/verify-audit.js";
import { openAuditBed } from "../support/audit/audit-bed.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { startRedis } from "../support/store/redis.js";
import { openStoreBed } from "../support/store/store-bed.js";

afterEach(() => vi.unstubAllEnvs());

async function said(...args: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const code = await verifyAudit(args, (line) => void lines.push(line));
  return { code, text: lines.join("\n") };
}

test.each([
  ["--from=yesterday", "yesterday is no instant"],
  ["--to=2026-13-01T00:00:00Z", "2026-13-01T00:00:00Z is no instant"],
  ["--from=2026-02-30T00:00:00Z", "2026-02-30T00:00:00Z is no instant"],
  ["--head=12", "12 is no NUMBER:HASH"],
  ["--head=0:" + "0".repeat(64), "0:0000000000"],
  ["--bogus", "Unknown option '--bogus'"],
])("what is wrong with %s is said before the usage", async (argument, fault) => {
  const { code, text } = await said(argument);
  expect(code).toBe(2);
  expect(text).toMatch(/\n\nusage: npm run audit:verify/);
  expect(text.startsWith(fault)).toBe(true);
});

test("a range that ends before it begins is refused", async () => {
  const { code, text } = await said("--from=2026-02-01T00:00:00Z", "--to=2026-01-01T00:00:00Z");
  expect({ code, text }).toMatchObject({
    code: 2,
    text: expect.stringContaining("--to has to be after --from"),
  });
});

test("who asks for help is given it", async () => {
  const { code, text } = await said("--help");
  expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining("--head") });
});

test("a head of which nothing is kept any more is compared with nothing: the command says so, and ends with 2", async () => {
  const server = await startRedis();
  const stores = await openStoreBed(server, { project: "audit" });
  const bed = await openAuditBed(stores, { segmentEntries: 1 });
  const place = new DaemonPlace({ redisUrl: server.url });
  for (const [name, value] of Object.entries(place.environment)) vi.stubEnv(name, value);
  try {
    await bed.appendPaths(["/1", "/2", "/3"]);
    await bed.seal();
    const [, two] = await bed.audit.segments(1, 3);
    if (!two) throw new Error("nothing was sealed");
    await bed.audit.drop(two);
    // Only the chain is looked at where the range has no requests.
    const chain = ["--from=2020-01-01T00:00:00Z", "--to=2020-01-02T00:00:00Z"];
    const { code, text } = await said(...chain, `--head=1:${"0".repeat(64)}`);
    expect(text.split("\n")).toEqual([
      "0 segments with 0 entries of the range, 0 faults",
      "the noted segment is kept no longer: nothing was compared with it",
      "segments kept: 3 to 3",
      expect.stringMatching(/^head: 3:/),
    ]);
    expect(code).toBe(2);
    expect(await said(...chain, `--head=2:${two.hash}`)).toMatchObject({ code: 0 });
    expect(await said(...chain, `--head=2:${"0".repeat(64)}`)).toMatchObject({ code: 1 });
    expect(await said(...chain)).toMatchObject({ code: 0 });
  } finally {
    await bed.close();
    await stores.close();
    await server.stop();
    place.remove();
  }
});
