import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { fillBy, fillOf, shorten, valuesOf } from "../../support/browser/fill/fill-bed.js";
import { useFilledChromium } from "../../support/browser/fill/filled-chromium.js";

const bed = useFilledChromium();
const input = `<input id="user">`;
const filled = { status: "completed", outcomes: ["filled"] };
const denied = { kind: "refused", why: "destination_denied" };

/** A frame by what makes it, and whether it counts as one of the page's origin. */
const frames: readonly (readonly [string, string, boolean])[] = [
  ["of the page's origin", `frame.src = "/inner"`, true],
  ["that is given its text", `frame.srcdoc = inner`, true],
  ["of about:blank", `document.body.append(frame); frame.contentDocument.body.innerHTML = inner`, true],
  [
    "of a blob of the page's",
    `frame.src = URL.createObjectURL(new Blob([inner], { type: "text/html" }))`,
    true,
  ],
  ["of another origin", `frame.src = "{other}/inner"`, false],
  ["in a sandbox", `frame.sandbox = "allow-scripts"; frame.src = "/inner"`, false],
  ["in a sandbox, given its text", `frame.sandbox = "allow-scripts"; frame.srcdoc = inner`, false],
  ["of data", `frame.src = "data:text/html," + encodeURIComponent(inner)`, false],
  [
    "of a blob of the page's, in a sandbox",
    `frame.sandbox = ""; frame.src = URL.createObjectURL(new Blob([inner], { type: "text/html" }))`,
    false,
  ],
];

describe.each(engines)("what may go to one origin, in %s", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  beforeAll(async () => {
    chromium = await bed.launch(spec);
    client = new PipeClient(chromium);
    session = await client.attach();
  });
  beforeEach(async () => {
    bed.site.serve({ body: "", others: { "/inner": input, "/filled": input } });
    await client.open("about:blank", session);
  });

  const fill = async (allowed: string): Promise<object> => {
    const given = fillOf({ fields: [["#user", "secret-1"]] });
    return shorten(await fillBy(chromium.pipe, { ...given, allowed_origins: [allowed] }));
  };
  const isThere = async (url: RegExp): Promise<boolean> => {
    const tree = JSON.stringify(await client.send("Page.getFrameTree", {}, session));
    return url.test(tree) || (await client.targets("iframe")).some((target) => url.test(target.url));
  };

  test.each(frames)("a frame %s", async (_what, script, isAllowed) => {
    await client.open(`${bed.site.here}/`, session);
    await client.evaluate(
      `new Promise((resolve) => {
        const inner = ${JSON.stringify(input)};
        const frame = document.createElement("iframe");
        frame.onload = resolve;
        ${bed.site.placed(script)};
        if (!frame.isConnected) document.body.append(frame);
      })`,
      session,
    );
    await until("the frame", () => isThere(/about:|blob:|data:|inner/));
    expect(await fill(bed.site.here)).toEqual(isAllowed ? filled : denied);
    expect(await valuesOf(client)).toEqual(isAllowed ? { user: "secret-1" } : {});
  });

  test.each([
    ["of data", () => `data:text/html,${encodeURIComponent(input)}`, "null"],
    [
      "whose host has a dot at its end",
      () => `${bed.site.other.replace("localhost", "localhost.")}/filled`,
      "",
    ],
  ])("a page %s", async (_what, address) => {
    await client.open(address(), session);
    for (const allowed of [bed.site.here, bed.site.other]) expect(await fill(allowed)).toEqual(denied);
    expect(await valuesOf(client)).toEqual({});
  });

  test("a page of about:blank that another origin has opened has that one's", async () => {
    await client.open(`${bed.site.other}/`, session);
    await client.evaluate(
      `self.blank = open("about:blank"); void (blank.document.body.innerHTML = '${input}')`,
      session,
    );
    const blank = { page_url: "about:blank", ...fillOf({ fields: [["#user", "secret-1"]] }) };
    const fillBlank = async (allowed: string) =>
      shorten(await fillBy(chromium.pipe, { ...blank, allowed_origins: [allowed] }));
    expect(await fillBlank(bed.site.here)).toEqual(denied);
    expect(await valuesOf(client)).toEqual({});
    expect(await fillBlank(bed.site.other)).toEqual(filled);
    const opened = (await client.targets()).find(({ url }) => url === "about:blank");
    await client.send("Target.closeTarget", { targetId: opened?.targetId });
  });
});
