import type { ClientEnd, ClientObserver } from "../../../src/gateway/ports.js";
import type { GatewayBrowser } from "./gateway-browser.js";

/** Why the clients of a browser are told to have ended, from here on and in order. */
export function endsAt({ bed }: Pick<GatewayBrowser, "bed">): readonly ClientEnd[] {
  const ends: ClientEnd[] = [];
  const none = (): void => {};
  const closed: ClientObserver["closed"] = (_, end) => void ends.push(end);
  bed.observer = { opened: none, message: none, command: none, requested: none, closed };
  return ends;
}
