import type { Chromium } from "../../src/browser/chromium.js";
import { PipeClient } from "./chromium-client.js";
import { until } from "./chromium-until.js";

const shown = `new Promise(async (resolve) => {
  const { addWebUiListener } = await import("chrome://resources/js/cr.js");
  addWebUiListener("policies-updated", (_, { policyGroups: { chrome } }) => resolve(Object.entries(chrome.policies).map(([name, { value, ignored }]) => [name, value, ignored])));
  chrome.send("listenPoliciesUpdates");
}).catch(() => undefined)`;

/** The policies in force, as the browser says of itself at chrome://policy. */
export async function shownPolicies(chromium: Chromium): Promise<Record<string, unknown>> {
  const client = new PipeClient(chromium);
  const { targetId } = await client.send("Target.createTarget", { url: "chrome://policy" });
  const session = await client.attach(targetId as string);
  const rows = await until("chrome://policy", () => client.evaluate(shown, session).catch(() => undefined));
  await client.send("Target.closeTarget", { targetId });
  return Object.fromEntries((rows as [string, unknown, boolean?][]).flatMap(([name, value, isIgnored]) => (isIgnored ? [] : [[name, value]])));
}
