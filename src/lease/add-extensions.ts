import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { type Detail, done, type Done, refusal, type Refusal } from "../base/errors.js";
import type { Digest } from "../base/ids.js";
import type { NodeReply, NodeRequest } from "../pool/ports/messages.js";
import type { LeasedBrowser } from "../pool/browser.js";
import { bounds } from "../spec/bodies.js";
import type { SessionReader } from "../pool/launch-templates.js";
import { fieldFault } from "../spec/field-checks.js";
import { findSession } from "../pool/lookup.js";
import type { Caller } from "../spec/caller.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import { capturingLease, type Session } from "../pool/session.js";
import type { SentExtension } from "../pool/operations.js";

interface AddExtensionsPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly sessionReader: SessionReader;
  /** Why no browser could load the archive: none where one could. */
  faultsOf(path: string): Promise<readonly string[]>;
  /** Keeps the file where every node finds it. */
  keep(digest: Digest, path: string): Promise<void>;
  askNode(browser: LeasedBrowser, what: NodeRequest, limitMs?: Millis): Promise<NodeReply>;
  /**
   * The limit from the last byte of the archives to the reply, which includes a restart of Chromium; clients
   * give up at 60 s.
   */
  readonly answerLimitMs: Millis;
  readonly clock: Clock;
}

/**
 * The share of the limit for checking and keeping archives. The rest is left to the node, which needs a tenth
 * of a second to load extensions and a few seconds to restart Chromium.
 */
const shareOfPreparing = 0.5;

/**
 * What can be refused before the archives are read is refused here; it is looked at again after them, since
 * they may have taken minutes.
 */
export const makeFindUploadTarget =
  (ports: TargetPorts) =>
  async (ref: string, caller: Caller): Promise<Done<Session> | Refusal> => {
    const target = await findTarget(ports, ref, caller);
    if (target.kind === "done") caller.concerns?.(capturingLease(target.value));
    return target;
  };

type TargetPorts = Pick<AddExtensionsPorts, "poolStore" | "projects" | "sessionReader">;

async function findTarget(
  ports: TargetPorts,
  ref: string,
  { lease }: Pick<Caller, "lease">,
): Promise<Done<Session> | Refusal> {
  const found = await findSession(ports, ref);
  const session = found && (await ports.sessionReader.findSession(found.browser, found.at));
  if (!session) return refusal("browser_not_found");
  if (lease && lease !== session.browser.lease.id) return refusal("lease_superseded");
  if (session.launch.engine !== "chromium")
    return refusal("not_supported", { message: `${session.launch.engine} has no extensions` });
  return done(session);
}

/**
 * POST /browsers/{id}/extensions: all of them are in force, or the browser is as it was. `meant` is as it was
 * found before the archives came: nobody else's lease is given them.
 */
export const makeAddExtensions =
  (ports: AddExtensionsPorts) =>
  async (meant: Session, items: readonly SentExtension[], caller: Caller): Promise<Done<null> | Refusal> => {
    const endsAt = ports.clock.monotonic() + ports.answerLimitMs;
    const refused = await prepareInTime(ports, meant, items);
    if (refused) return refused;
    const now = await findTarget(ports, meant.browser.id, caller);
    if (now.kind === "refused") return now;
    if (now.value.browser.lease.id !== meant.browser.lease.id) return refusal("lease_superseded");
    if (caller.gone.aborted)
      return refusal("bad_request", { message: "The caller has gone; nothing has changed" });
    const limitMs = endsAt - ports.clock.monotonic();
    return answered(
      await ports.askNode(
        now.value.browser,
        { kind: "extensions", items: items.map(({ name, digest }) => ({ name, digest })) },
        limitMs,
      ),
    );
  };

async function prepareInTime(
  ports: AddExtensionsPorts,
  meant: Session,
  items: readonly SentExtension[],
): Promise<Refusal | undefined> {
  const limitMs = ports.answerLimitMs * shareOfPreparing;
  try {
    return await within(
      ports.clock,
      { what: "checking and keeping archives", limitMs },
      prepare(ports, meant, items),
    );
  } catch (error) {
    if (!(error instanceof TimeLimitReached)) throw error;
    return refusal("extension_failed", {
      message: "Checking and keeping the archives took too long; the browser is as it was",
    });
  }
}

/** Checks all before any is kept. */
async function prepare(
  ports: AddExtensionsPorts,
  meant: Session,
  items: readonly SentExtension[],
): Promise<Refusal | undefined> {
  const faults = [...countFaults(meant, items), ...(await archiveFaults(ports, items))];
  if (faults.length > 0) return refusal("bad_request", { details: faults });
  for (const { digest, path } of items) await ports.keep(digest, path);
  return undefined;
}

/**
 * The extensions of the launch count too (docs/api.md#bounds-of-fields); only the node knows of earlier
 * uploads.
 */
function countFaults({ launch }: Session, items: readonly SentExtension[]): readonly Detail[] {
  const faults: Detail[] = [];
  const total = (launch.extension_ids?.length ?? 0) + items.length;
  if (total > bounds.extensions)
    fieldFault(
      faults,
      "extensions",
      `the browser would have ${total} of them, and may have ${bounds.extensions}`,
    );
  return faults;
}

/** Checks one after the other, because each is unpacked whole to be checked. */
async function archiveFaults(
  ports: AddExtensionsPorts,
  items: readonly SentExtension[],
): Promise<readonly Detail[]> {
  const faults: Detail[] = [];
  for (const { name, path } of items) {
    for (const found of await ports.faultsOf(path)) fieldFault(faults, name, found);
  }
  return faults;
}

function answered(answer: NodeReply): Done<null> | Refusal {
  switch (answer.kind) {
    case "done":
      return done(null);
    case "silent":
      return refusal("node_silent", { retryAfterSeconds: 1 });
    case "failed":
      return refusal(
        answer.code ?? "extension_failed",
        answer.text === undefined ? {} : { message: answer.text },
      );
  }
}
