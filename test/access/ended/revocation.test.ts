import { expect, test } from "vitest";
import { sharedAccessBed, type MadeKey } from "../../support/access/access-bed.js";

const bed = sharedAccessBed(2);

/** Asks one control after another until it is told to stop; gives each request's start and status. */
function ask({ key }: MadeKey, control: number) {
  const client = bed.as(key, control);
  const answers: { readonly from: number; readonly status: number }[] = [];
  const state = { isOver: false };
  const run = async (): Promise<void> => {
    while (!state.isOver) {
      const from = performance.now();
      const { status } = await client.call("GET /auth/context");
      answers.push({ from, status });
    }
  };
  const running = Promise.all(Array.from({ length: 4 }, run));
  return {
    answers,
    async stop(): Promise<void> {
      state.isOver = true;
      await running;
    },
  };
}

test.each([
  ["deleted", (id: string) => bed.root.call(`DELETE /org/api_keys/${id}`)],
  [
    "rotated without a grace",
    (id: string) => bed.root.call(`POST /org/api_keys/${id}/rotate`, { expire_in_days: 0 }),
  ],
])("a key that is %s under load lets in not one request more, on either control", async (_, revoke) => {
  const made = await bed.make();
  const asking = [ask(made, 0), ask(made, 1)];
  const counts = () => asking.map(({ answers }) => answers.length);
  await expect.poll(() => Math.min(...counts())).toBeGreaterThan(20);
  expect((await revoke(made.id)).status).toBeLessThan(300);
  const revokedAt = performance.now();
  const before = counts();
  await expect.poll(() => counts().every((count, at) => count > (before[at] ?? 0) + 20)).toBe(true);
  for (const one of asking) await one.stop();
  for (const { answers } of asking) {
    const late = answers.filter(({ from }) => from > revokedAt);
    expect(late.length).toBeGreaterThan(10);
    expect(new Set(late.map(({ status }) => status))).toEqual(new Set([401]));
    expect(answers[0]).toMatchObject({ status: 200 });
  }
});
