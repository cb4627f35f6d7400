import { Page } from "../../egress/corpus/page.js";
import type { Holder, Trace } from "./trace.js";

/** Opens the site whose certificate nobody trusts, in a page that is closed then; was it shown? */
async function visit({ cdp, site }: Holder, isIgnoring: boolean): Promise<boolean> {
  const page = await Page.open(cdp, "about:blank");
  if (isIgnoring) await page.command("Security.setIgnoreCertificateErrors", { ignore: true });
  const { result } = await page.goto(`${site.secure.origin}/`);
  await cdp.send("Target.closeTarget", { targetId: page.target });
  return result?.["errorText"] === undefined;
}

/** What is kept of connections by TLS. That a site wants https only is tried in test/browser/reset. */
export const certificates: readonly Trace[] = [
  {
    name: "a TLS session",
    succeedsPlain: true,
    leave: (holder) => visit(holder, true),
    find: async (holder) => (await visit(holder, true)) && holder.site.secure.wasResumed(),
  },
  {
    name: "errors of certificates that are ignored",
    succeedsPlain: { because: "what a CDP session has set goes with its client" },
    leave: async ({ open }) =>
      (await open()).command("Security.setIgnoreCertificateErrors", { ignore: true }),
    find: (holder) => visit(holder, false),
  },
  {
    name: "a certificate that was accepted",
    needsChromium: true,
    succeedsPlain: { because: "what is lent in turn shows no way past the warning" },
    async leave({ cdp, site }) {
      const page = await Page.open(cdp, `${site.secure.origin}/`);
      await page.evaluate(`document.getElementById("details-button")?.click();
        document.getElementById("proceed-link")?.click(); await soon(new Promise(() => {}), 1000)`);
    },
    find: (holder) => visit(holder, false),
  },
];
