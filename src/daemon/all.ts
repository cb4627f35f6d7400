import { announce } from "./announce.js";
import { openControl } from "./control/control.js";
import { nodeAddressOf, openSilentNodes } from "./gateway.js";
import { interceptorOf } from "./control/http.js";
import { nodeIdentity, openNode } from "./node/node.js";
import { makeRole, packageRoot, take } from "./shared.js";

/** Runs control and node in one process. */
export const allRole = makeRole(async (shared, stops) => {
  const { config, stores, url, log } = shared;
  const identity = await nodeIdentity(config);
  const silentNodes = openSilentNodes(shared);
  const agent = take(
    stops,
    "agent",
    await openNode(shared, { identity, unreachable: silentNodes.suspect.bind(silentNodes) }),
  );
  const control = take(
    stops,
    "control",
    await openControl(shared, {
      silentNodes,
      interceptor: interceptorOf(agent.gateway, agent.direct),
      unready: agent.unready,
    }),
  );
  // The agent stops before the server: while leases end, the server takes their releases, and it waits for no
  // client's socket. A second run gives the result of the first.
  stops.add("agent", () => agent.stops.run());
  stops.add("waiting callers", control.dismiss);
  url.set(control.port);
  await stores.contact();
  await agent.begin(nodeAddressOf(config, control.port), { host: config.server.host, port: control.port });
  await control.begin();
  log.info({ url: url.of(), node: identity.node }, "listening");
  announce({ ...shared, url: url.of(), pools: control.pools, installRoot: packageRoot });
});
