import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import { LateDetaches } from "../../../src/browser/cdp/late-detaches.js";
import type { Pipe } from "../../../src/browser/cdp/pipe.js";
import type { ProxyListener } from "../../../src/egress/parts.js";

const pipe: Pipe = {
  send() {},
  sendParts() {},
  onFrame: () => () => {},
  onClosed: () => () => {},
  backlogBytes: () => 0,
  onDrained: () => () => {},
  hold() {},
  resume() {},
  lateDetaches: new LateDetaches(() => {}),
};
const directories = {
  root: "",
  profile: "",
  extensions: "",
  downloads: "",
  uploads: "",
  temporary: "",
  cache: "",
  configuration: "",
  data: "",
  keys: "",
  display: "",
  authority: "",
};

/**
 * A browser that is none: it answers at once and does nothing. What is measured is what is asked of Redis
 * because there is one.
 */
export function simulatedBrowser({ browser: id }: LaunchSpec): Chromium {
  let end: (exit: Awaited<Chromium["exited"]>) => void = () => {};
  const exited = new Promise<Awaited<Chromium["exited"]>>((resolve) => (end = resolve));
  const kill = async (): Promise<void> => end({ code: 0, signal: null, lastLines: [] });
  return {
    id,
    pid: 0,
    pipe,
    directories,
    exited,
    kill,
    memory: async () => undefined,
    outOfMemoryKills: () => undefined,
    close: kill,
    attestation: undefined,
    extensions: [],
    isolation: {
      rung: "none",
      files: "host",
      tenants: "one",
      sandbox: "none",
      uid: null,
      network: "none",
      limits: { memory: "watch", tasks: "none", cpu: "none", busy: "none", scratch: "watch" },
    },
    version: { product: "simulated", protocolVersion: "1.3", userAgent: "simulated" },
    startSidecar: () => Promise.reject(new Error("this browser has no sidecars")),
    probe: async () => {},
    attest: async () => ({ at: "", denied: true }),
    reset: async () => ({ differences: [] }),
    allowDownloads: async () => {},
    navigate: async () => {},
    resize: async () => {},
    watchNavigation: async () => {},
    armPasskey: async () => async () => {},
    load: async () => ({ kind: "loaded" }),
    fillPage: async () => ({ kind: "refused", why: "page_not_found" }),
    keepCookies: async () => {},
    stopAndKeep: async () => ({
      directories,
      uid: null,
      extensions: [],
      isWhole: true,
      occupy() {},
      vacate: async () => {},
      discard: kill,
    }),
  };
}

/** An egress whom nobody can reach. */
export const silentListener = (): ProxyListener => ({
  tier: "proxy",
  proxyUrl: "http://127.0.0.1:1",
  listen: async () => {},
  close() {},
});
