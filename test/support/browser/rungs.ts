import type { BrowserHost } from "../../../src/browser/host.js";
import { rungs } from "../../../src/browser/isolation/rungs.js";
import { makeWalls } from "../../../src/browser/isolation/walls.js";

/** The host as it would be on a machine where no private root can be had. */
export function withoutPrivateRoot(host: BrowserHost): BrowserHost {
  const rung = rungs.find(({ name }) => name === "none") ?? rungs[4];
  const walls = makeWalls({
    rung,
    sandbox: "namespace",
    tools: host.tools,
    system: [],
    desktop: [],
    libraries: [],
    programs: [],
    policies: "/none",
    configuration: [],
    etcOf: () => "/none",
  });
  return { ...host, walls };
}
