import { expect, test } from "vitest";
import { rewrapCommand } from "../../src/daemon/rewrap-vaults.js";

async function said(...args: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const code = await rewrapCommand(args, (line) => void lines.push(line));
  return { code, text: lines.join("\n") };
}

test("who asks for help is given it, and what is not understood is said before it", async () => {
  expect(await said("--help")).toMatchObject({
    code: 0,
    text: expect.stringMatching(/^usage: npm run vault:rewrap/),
  });
  expect(await said("--all")).toMatchObject({
    code: 2,
    text: expect.stringMatching(/^--all is not understood\n\nusage: /),
  });
});
