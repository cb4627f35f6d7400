import { expect, test } from "vitest";
import { verifyAudit } from "../../src/daemon/verify-audit.js";

async function said(...args: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const code = await verifyAudit(args, (line) => void lines.push(line));
  return { code, text: lines.join("\n") };
}

test.each([
  ["--from=yesterday", "yesterday is no instant"],
  ["--to=2026-13-01", "2026-13-01 is no instant"],
  ["--head=12", "12 is no NUMBER:HASH"],
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
