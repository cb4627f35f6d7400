import { expect, onTestFinished, test } from "vitest";
import { summarize } from "../../../src/browser/cdp/frame.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { mappersOf, programsUnder } from "../../support/gateway/mappers.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

/** Counts the commands that Chromium answers from here on, whoever has sent them. */
function countAnswers({ chromium }: GatewayBrowser): { count: number } {
  const answers = { count: 0 };
  const stop = chromium.pipe.onFrame((frame) => {
    if (summarize(frame).id !== undefined) answers.count += 1;
  });
  onTestFinished(stop);
  return answers;
}

/** The walls around a program, and those around Chromium itself. */
const walls = (): number => programsUnder(process.pid).filter((name) => name === "bwrap").length;

test("a browser that nobody drives by BiDi has no mapper, and the last client takes its mapper along", async () => {
  const browser = await openGatewayBrowser();
  onTestFinished(() => browser.close());
  const answers = countAnswers(browser);
  const cdp = await connectRaw(browser.url());
  const look = async () => {
    answers.count = 0;
    const { result } = await cdp.send("Target.getTargets");
    const infos = (result?.["targetInfos"] ?? []) as { targetId: string }[];
    const targets = infos.map(({ targetId }) => targetId);
    await cdp.send("Browser.getVersion");
    return { mappers: mappersOf(process.pid).length, walls: walls(), targets, answers: answers.count };
  };
  // Those of tests before may still be ending.
  await expect.poll(() => mappersOf(process.pid)).toEqual([]);
  const before = await look();
  // What it answers are the two commands of the client that looks.
  expect(before).toMatchObject({ mappers: 0, answers: 2 });

  // A session that is made by HTTP has no mapper before its socket.
  const http = browser.bidi().replace("ws:", "http:");
  const status = await fetch(http.replace("/session?", "/status?"));
  const made = await fetch(http, { method: "POST", body: JSON.stringify({ capabilities: {} }) });
  expect([status.status, made.status]).toEqual([200, 200]);
  expect(await look()).toEqual(before);

  const clients = [await connectBidi(browser.bidi()), await connectBidi(browser.bidi())];
  answers.count = 0;
  for (const client of clients) await client.begin();
  expect(answers.count).toBeGreaterThan(0);
  // A mapper is a process and no page.
  expect(await look()).toMatchObject({ mappers: 2, targets: before.targets });

  await clients[0]?.close();
  await expect.poll(look).toMatchObject({ mappers: 1 });
  clients[1]?.socket.terminate();
  await expect.poll(look).toEqual(before);
  await cdp.close();
});
