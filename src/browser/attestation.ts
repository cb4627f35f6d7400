import { readlink } from "node:fs/promises";
import { type Clock, type Millis, timestampOf } from "../base/clock.js";
import type { Canary } from "./canary.js";
import type { Cdp } from "./cdp/cdp.js";

/** What an attestation needs; whoever holds the browser's egress gives it. */
export interface AttestationParts {
  /** The counts of the browser's egress: how often each rule has denied. */
  usage(): { readonly denied: Readonly<Record<string, number | undefined>> };
  /**
   * A URL that the present rules deny; `metadataUrl` where it is absent. It has to be given where the rules
   * open that one.
   */
  readonly denied?: string;
  /**
   * A URL that the present rules allow and that, as the operator says, exists; any answer of its server
   * counts.
   */
  readonly allowed?: string;
}

/** What was proved of a browser's egress. */
export interface Attestation {
  /** When it was proved, in ISO 8601. */
  readonly at: string;
  /** The browser's own egress denied what it had to deny, and no request went past it. */
  readonly denied: true;
  /** Present where a URL was named that had to be reached. */
  readonly allowed?: true;
}

/** The browser whose inside is asked. */
interface AttestedBrowser {
  readonly cdp: Cdp;
  readonly clock: Clock;
  /** An open page. It is not navigated, and does not notice. */
  readonly page: string;
  /** The pid of Chromium's main process. */
  readonly pid: number;
  /** Path of the network namespace it has to be in, if any. */
  readonly namespace: string | undefined;
  readonly canary: Canary;
}

/** The browser is not held by its egress, or that could not be proved: it must not be handed out. */
export class NotAttested extends Error {
  constructor(reason: string) {
    super(`the browser's egress is not attested: ${reason}`);
    this.name = "NotAttested";
  }
}

/**
 * A link-local address: its requests go past the proxy unless Chromium is told otherwise (Chromium 156,
 * docs/chromium.md#ways-past-the-proxy).
 */
const metadataUrl = "http://169.254.169.254/";

/**
 * Chromium breaks off whatever it is loading when the machine's addresses change, as they do when containers
 * come and go (Chromium 156, docs/chromium.md#ways-past-the-proxy).
 */
const networkChanged = "net::ERR_NETWORK_CHANGED";
const mostTries = 3;

/**
 * Proves from inside a browser that its egress holds it. A page's network stack requests, all at once, a
 * destination that is denied and one on the machine's loopback that is never open (`Canary`): the two kinds
 * of address that Chromium would dial itself. Each has to come back with the egress's own refusal, the egress
 * has to have counted it, and the canary must not have been touched. In the namespace tier the browser's
 * process has to be in that namespace. The requests are `Network.loadNetworkResource`, which leaves no
 * history, cache, cookie or target behind. Throws `NotAttested`, or what stopped the question
 * (`TimeLimitReached`, `PipeClosed`).
 */
export async function attest(
  attested: AttestedBrowser,
  asking: AttestationParts,
  limitMs: Millis,
): Promise<Attestation> {
  const { cdp, clock, page, canary } = attested;
  await checkNamespace(attested);
  const { sessionId: session } = await cdp.send(
    "Target.attachToTarget",
    { targetId: page, flatten: true },
    { limitMs },
  );
  const canaryPath = canary.openPath();
  const load = async (url: string, tries = mostTries): Promise<ResourceAnswer> => {
    const options = { disableCache: true, includeCredentials: false };
    const { resource } = await cdp.send(
      "Network.loadNetworkResource",
      { frameId: page, url, options },
      { session, limitMs },
    );
    return resource.netErrorName === networkChanged && tries > 1 ? await load(url, tries - 1) : resource;
  };
  try {
    const before = denials(asking);
    const closed = [asking.denied ?? metadataUrl, canaryPath.url];
    const answers = Promise.all(closed.map((url) => load(url)));
    const [refusals, reached] = await Promise.all([
      answers,
      asking.allowed === undefined ? undefined : load(asking.allowed),
    ]);
    if (canaryPath.wasTouched()) throw new NotAttested("a request went past it");
    const other = refusals.find((answer) => !isDenied(answer));
    if (other) throw new NotAttested(`what it has to deny was answered otherwise: ${textOf(other)}`);
    if (denials(asking) - before < closed.length) throw new NotAttested("it did not see what was denied");
    if (reached && !isReached(reached))
      throw new NotAttested(`what it has to allow was not reached: ${textOf(reached)}`);
    return { at: timestampOf(clock.now()), denied: true, ...(reached && { allowed: true }) };
  } finally {
    canaryPath.close();
    await cdp.leave(session, { limitMs }).catch(() => {});
  }
}

interface ResourceAnswer {
  readonly httpStatusCode?: number;
  readonly netErrorName?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
}

/** Both paths are links whose text is the namespace's kind and inode. */
async function checkNamespace({ pid, namespace }: AttestedBrowser): Promise<void> {
  if (namespace === undefined) return;
  const [wanted, found] = await Promise.all([namespace, `/proc/${pid}/ns/net`].map((path) => readlink(path)));
  if (wanted !== found) throw new NotAttested("it is not in its network namespace");
}

const denials = (asking: AttestationParts): number =>
  Object.values(asking.usage().denied).reduce<number>((sum, count) => sum + (count ?? 0), 0);

const isDenied = (answer: ResourceAnswer): boolean =>
  answer.httpStatusCode === 403 && egressHeader(answer) === "denied";
const isReached = (answer: ResourceAnswer): boolean =>
  answer.httpStatusCode !== undefined && egressHeader(answer) === undefined;

const textOf = ({ httpStatusCode, netErrorName }: ResourceAnswer): string =>
  `${httpStatusCode ?? netErrorName ?? "no answer"}`;

/** The header by which an egress tells its own answers from those of servers. */
function egressHeader({ headers = {} }: ResourceAnswer): unknown {
  const name = Object.keys(headers).find((each) => each.toLowerCase() === "x-remuda-egress");
  return name === undefined ? undefined : headers[name];
}
