import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Readable, Writable } from "node:stream";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import { openPipe } from "../../../src/browser/cdp/pipe.js";
import type { Engine } from "../../../src/browser/chromium.js";
import { directoriesOf, makeDirectories } from "../../../src/browser/directories.js";
import { findExecutable } from "../../../src/browser/executable.js";
import { Downloads } from "../../../src/browser/downloads.js";
import { clearBrowser } from "../../../src/browser/reset/clear-browser.js";
import { attachTo } from "../../../src/browser/reset/fingerprint.js";
import { switchesOf } from "../../../src/browser/switches.js";
import { bound } from "../../support/bound.js";
import { launchSpec } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { openSecureSite, secureSiteKey, type SecureSite } from "../../support/egress/egress-secure-site.js";

/** HSTS is of names only (RFC 6797, 8.1.1), so this one leads to the site by a proxy. */
const name = "held.test";
/** Its icon keeps Chromium from asking for one, which would be a request more. */
const page = "<!doctype html><title>come</title><link rel=icon href='data:,'>";
/** Which of the two ways each request took. */
const schemes: string[] = [];
let secure: SecureSite;
const proxy = createServer((request, response) => {
  // What Chromium asks for on its own is none.
  if (request.headers.host === name) schemes.push("http");
  response.writeHead(200, { "content-type": "text/html" }).end(page);
});
proxy.on("connect", (_, socket) => {
  const to = connect(secure.port, secure.host, () => void socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  socket.on("error", () => to.destroy()).pipe(to);
  to.on("error", () => socket.destroy()).pipe(socket);
});
beforeAll(async () => {
  secure = await openSecureSite("127.0.0.1", (_, response) => {
    schemes.push("https");
    const headers = { "content-type": "text/html", "strict-transport-security": "max-age=9999" };
    response.writeHead(200, headers).end(page);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
});
afterAll(async () => {
  proxy.closeAllConnections();
  await Promise.all([secure.close(), new Promise((resolve) => void proxy.close(resolve))]);
});

/**
 * A browser of our switches that trusts the site, which no setting makes headless-shell do: only from
 * connections without an error does Chromium take HSTS.
 */
async function open(engine: Engine) {
  const executable = await findExecutable(engine);
  if (executable === undefined) throw new Error(`${engine} is not installed`);
  const scratch = await mkdtemp(join(tmpdir(), "remuda-test-hsts-"));
  const directories = directoriesOf(scratch, "b");
  await makeDirectories(directories, null);
  const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const switches = switchesOf(launchSpec({ engine, egress: { proxyUrl } }), {
    profile: directories.profile,
    sandbox: "none",
  });
  const trusting = `--ignore-certificate-errors-spki-list=${secureSiteKey}`;
  const [program = "", ...args] = bound(executable, trusting, ...switches);
  const env = { HOME: directories.root, TMPDIR: directories.temporary };
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  const pipe = openPipe(child.stdio[3] as Writable, child.stdio[4] as Readable);
  const cdp = new Cdp(pipe, systemClock);
  try {
    // It answers once it has started, which takes longer than a command may.
    await cdp.send("Browser.getVersion", {}, { limitMs: 60_000 });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    cdp,
    directories,
    downloads: new Downloads(cdp, directories.downloads),
    clock: systemClock,
    close,
  };
}

/** Opens a page of the site; gives the way that its request took, once Chromium has its answer. */
async function visit(cdp: Cdp, url: string): Promise<string | undefined> {
  schemes.splice(0);
  const { targetId } = await cdp.send("Target.createTarget", { url });
  await until("the page", async () => {
    const { targetInfos } = await cdp.send("Target.getTargets", {});
    return targetInfos.some((target) => target.targetId === targetId && target.title === "come");
  });
  await cdp.send("Target.closeTarget", { targetId });
  return schemes[0];
}

test.each(["headless-shell", "chromium"] as const)(
  "%s: that a site wants https only is forgotten",
  async (engine) => {
    const browser = await open(engine);
    const { cdp } = browser;
    try {
      expect(await visit(cdp, `http://${name}/`)).toBe("http");
      expect(await visit(cdp, `https://${name}/`)).toBe("https");
      expect(await visit(cdp, `http://${name}/`)).toBe("https");
      const { targetId } = await cdp.send("Target.createTarget", { url: "about:blank", newWindow: true });
      await clearBrowser(browser, await attachTo(cdp, targetId));
      expect(await visit(cdp, `http://${name}/`)).toBe("http");
    } finally {
      await browser.close();
    }
  },
);
