import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { withoutPrivateRoot } from "../../support/browser/rungs.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { shownPolicies } from "../../support/browser/chromium-policies.js";

let host: BrowserHost;
beforeAll(async () => {
  host = await openTestHost();
});
afterAll(() => host.close());
const { launch, killAll } = makeLauncher(() => host);
afterEach(killAll);

const start = (
  headless: boolean,
  policy?: LaunchSpec["policy"],
  egress?: LaunchSpec["egress"],
): Promise<Chromium> =>
  launch({ engine: "chromium", headless, ...(policy && { policy }), ...(egress && { egress }) });

/** Whether a page's script runs, seen by its effect, and the policies that it is shown. */
async function seen(chromium: Chromium): Promise<{ script: unknown; policies: Record<string, unknown> }> {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  await client.open("data:text/html,<title>off</title><script>document.title='on'</script>", session);
  return {
    script: await client.evaluate("document.title", session),
    policies: await shownPolicies(chromium),
  };
}

const modes = [
  ["headless", true],
  ["headful", false],
] as const;

test.each(modes)(
  "%s: two browsers of one machine at once have policies of their own, and a third has none",
  async (_, headless) => {
    const browsers = await Promise.all([
      start(headless, { DefaultJavaScriptSetting: 2, HomepageLocation: "https://one.example/" }),
      start(headless, {
        DefaultJavaScriptSetting: 1,
        HomepageLocation: "https://two.example/",
        TranslateEnabled: true,
      }),
      start(headless),
    ]);
    const [one, two, none] = await Promise.all(browsers.map(seen));
    expect([one?.script, two?.script, none?.script]).toEqual(["off", "on", "on"]);
    expect(one?.policies).toMatchObject({
      HomepageLocation: "https://one.example/",
      TranslateEnabled: false,
      DefaultJavaScriptSetting: 2,
    });
    expect(two?.policies).toMatchObject({ HomepageLocation: "https://two.example/", TranslateEnabled: true });
    expect(none?.policies).toMatchObject({ TranslateEnabled: false, QuicAllowed: false });
    expect(none?.policies).not.toHaveProperty("HomepageLocation");
  },
);

test.each(modes)("%s: nothing of a caller's takes the place of what is pinned", async (_, headless) => {
  // What the API would refuse, handed to the launch all the same.
  const hostile = {
    URLBlocklist: [],
    URLAllowlist: ["file://*"],
    AllowFileSelectionDialogs: true,
    ExtensionSettings: { "*": { installation_mode: "allowed" } },
    PolicyTestPageEnabled: true,
    QuicAllowed: true,
    WebRtcIPHandling: "default",
    ProxySettings: { ProxyMode: "direct" },
    ProxyMode: "direct",
    proxySettings: { ProxyMode: "direct" },
    "ProxySettings ": {},
    DnsOverHttpsMode: "secure",
  };
  const chromium = await start(
    headless,
    { ...hostile, HomepageLocation: "https://a.example/" },
    { proxyUrl: "http://127.0.0.1:9" },
  );
  const policies = await shownPolicies(chromium);
  expect(policies).toMatchObject({
    HomepageLocation: "https://a.example/",
    PolicyTestPageEnabled: false,
    QuicAllowed: false,
    WebRtcIPHandling: "disable_non_proxied_udp",
    DnsOverHttpsMode: "off",
    ProxySettings: { ProxyMode: "fixed_servers", ProxyServer: "http://127.0.0.1:9" },
    URLBlocklist: expect.arrayContaining(["*", "file://*", "chrome://*", "devtools://*"]),
    URLAllowlist: expect.not.arrayContaining(["file://*"]),
    ExtensionSettings: {
      "*": {
        allowed_types: ["extension", "theme"],
        blocked_permissions: expect.arrayContaining(["proxy", "debugger"]),
      },
    },
  });
});

test("where no policy reaches browsers, one that is asked to have one is not launched, and others are", async () => {
  const without = withoutPrivateRoot(host);
  const bare = makeLauncher(() => without);
  try {
    const launching = bare.launch({
      engine: "chromium",
      headless: true,
      policy: { HomepageLocation: "https://a.example/" },
    });
    await expect(launching).rejects.toThrow(/browser_policy was asked for/);
    await bare.launch({ engine: "chromium", headless: true, policy: {} });
  } finally {
    await bare.killAll();
  }
});
