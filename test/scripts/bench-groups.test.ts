import { expect, test } from "vitest";
import { goFirst, openIdleGroup } from "../bench/support/cpu.js";

test("what stands for another machine is not in the group that goes first", async () => {
  const goBack = await goFirst();
  try {
    // Undefined where no groups can be made, and then nothing goes first either.
    const group = await openIdleGroup("client");
    await group?.close();
    expect(group?.usageFile ?? "").not.toContain("-first/");
  } finally {
    await goBack();
  }
});
