import type { Dns } from "../../../support/egress/dns-server.js";
import type { Sink } from "../../../support/egress/egress-sink.js";
import type { RawCdp } from "../../../support/gateway/raw-cdp.js";
import { unreachable } from "../../../support/egress/egress-world.js";
import { allowedZone, deniedZone, type ClientAccess, type TestNetwork } from "../browser-source.js";
import type { Work } from "./attempt.js";
import { Page } from "./page.js";

type Zone = Parameters<Work["name"]>[0];

const hostIn = (nonce: string, zone: Zone): string =>
  zone === "local" ? `${nonce}.local` : `${zone}.${nonce}.${zone === "outside" ? deniedZone : allowedZone}`;

/**
 * Makes the names of one attempt known. The last is public when it is asked for first, and this machine ever
 * after.
 */
export function nameHosts(
  nonce: string,
  { dns, world }: TestNetwork & { readonly dns: readonly Dns[] },
): void {
  const node = world.node ?? "127.0.0.1";
  for (const server of dns) {
    server.set(hostIn(nonce, "outside"), [world.denied]);
    server.set(hostIn(nonce, "private"), [node]);
    server.set(hostIn(nonce, "loopback"), ["127.0.0.1"]);
    server.set(hostIn(nonce, "mixed"), [unreachable, node]);
    server.set(hostIn(nonce, "rebinding"), { turns: [[unreachable], ["127.0.0.1"]] });
  }
}

interface Given {
  readonly nonce: string;
  readonly sink: Sink;
  readonly network: TestNetwork;
  readonly access: ClientAccess;
  readonly cdp: RawCdp;
  readonly ownPorts: readonly number[];
  readonly dns: readonly Dns[];
  /** How many questions of each server are of those that were tried before. */
  readonly askedBefore: readonly number[];
  /** Pages that the attempt opened. */
  readonly opened: Page[];
  readonly shows: Work["shows"];
}

export function workOf({
  nonce,
  sink,
  network: { world, site, secure },
  access,
  cdp,
  ownPorts,
  dns,
  askedBefore,
  opened,
  shows,
}: Given): Work {
  const serve: Work["serve"] = (path, served) => site.serve(`/${nonce}${path}`, served);
  return {
    nonce,
    port: sink.port,
    world,
    site,
    secure,
    serve,
    shows,
    cdp,
    cdpUrl: access.cdpUrl,
    bidiUrl: access.bidiUrl ?? "",
    ownPorts,
    url: ({ scheme = "http", host = world.denied, path = "" } = {}) =>
      `${scheme}://${host.includes(":") && !/[[@]/.test(host) ? `[${host}]` : host}:${sink.port}/${nonce}${path}`,
    name: (zone) => hostIn(nonce, zone),
    async open(
      url = serve("/page", { body: "<!doctype html><title>allowed</title><body>allowed" }),
      context,
    ) {
      const page = await Page.open(cdp, url, context);
      opened.push(page);
      return page;
    },
    async upload(files) {
      if (!access.upload) throw new Error("there is nowhere to upload to");
      return await access.upload(files);
    },
    async extend(files) {
      const { result } = await cdp.send("Extensions.loadUnpacked", {
        path: await access.upload?.(files),
        enableInIncognito: true,
      });
      return result?.id !== undefined || (await access.extend?.(files)) === true;
    },
    permit: async (hosts) => await access.permit?.(hosts),
    namesAsked: () => dns.flatMap(({ queries }, at) => queries.slice(askedBefore[at])),
    saw: (what) => sink.record({ what, at: "Remuda" }),
  };
}
