import { openSealed, type Seal } from "../../base/crypto/seal.js";
import { Secret } from "../../base/crypto/secret.js";
import { type Detail, done, type Done, type Refusal, refusal } from "../../base/errors.js";
import { findOtlpDestinationId, newOtlpDestinationId, type OtlpDestinationId } from "../../base/ids.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { folded, isWanted, pageOf } from "../../spec/paging.js";
import { refuseInUse } from "../in-use.js";
import {
  type HeaderValues,
  headerValuesParser,
  type KeptDestination,
  type OpenedDestination,
  type OtlpDestination,
  type OtlpDestinationOperations,
  type OtlpDestinationPatch,
  type OtlpDestinationStore,
} from "./destination.js";
import { mergeHeaders, parseEndpoint } from "./fields.js";

interface DestinationRecords {
  readonly store: OtlpDestinationStore;
  readonly seal: Seal;
}
interface OtlpDestinationPorts extends DestinationRecords {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly most: number;
  /** Ids of the sessions that export there now. */
  exportingSessions(id: OtlpDestinationId): Promise<readonly string[]>;
  /** Why nothing may be sent there, to be read after the field's name; undefined where it may. */
  whyClosed(endpoint: URL): Promise<string | undefined>;
}

export const makeOtlpDestinationOperations = (ports: OtlpDestinationPorts): OtlpDestinationOperations => ({
  create: makeCreate(ports),
  list: makeList(ports),
  get: async (ref) => found(await findDestination(ports, ref)),
  update: makeUpdate(ports),
  remove: makeRemove(ports),
});

const notFound = refusal("otlp_destination_not_found");
const found = (destination: OtlpDestination | undefined): Done<OtlpDestination> | Refusal =>
  destination ? done(destination) : notFound;

/** No name looks like an id, so that a text means one of the two. */
async function findDestination(
  { store }: Pick<DestinationRecords, "store">,
  ref: string,
): Promise<OtlpDestination | undefined> {
  const id = findOtlpDestinationId(ref) ?? (await store.findNamed(ref));
  return id && (await store.find(id));
}

const makeList =
  ({ store }: OtlpDestinationPorts): OtlpDestinationOperations["list"] =>
  async (query) => {
    const all = await store.all();
    return pageOf(
      all.filter((one) => isWanted(one, query) || isAt(one, query)),
      query,
    );
  };

/** `query` finds a part of the endpoint too. */
const isAt = (
  one: OtlpDestination,
  { name, query }: { readonly name?: string; readonly query?: string },
): boolean =>
  query !== undefined &&
  folded(one.endpoint).includes(folded(query)) &&
  isWanted(one, name === undefined ? {} : { name });

const makeCreate =
  (ports: OtlpDestinationPorts): OtlpDestinationOperations["create"] =>
  async (body) => {
    const id = newOtlpDestinationId(ports.projects.project);
    const judged = await judge(ports, { id, change: body, headers: {} });
    if (judged.kind === "refused") return judged;
    const created = await ports.store.create({ id, ...judged.value, most: ports.most });
    if (created === "many")
      return refusal("limit_exceeded", {
        message: "The project has as many OTLP destinations as it may have",
        reached: { of: "project", most: ports.most },
      });
    return created === "taken" ? refusal("name_taken") : found(await ports.store.find(id));
  };

/** What was judged is what is kept: a change that came between is a conflict. */
const makeUpdate =
  (ports: OtlpDestinationPorts): OtlpDestinationOperations["update"] =>
  async (ref, patch) => {
    const id = (await findDestination(ports, ref))?.id;
    const kept = id && (await ports.store.findSealed(id));
    if (!kept) return notFound;
    const headers = openHeaders(ports.seal, kept.sealed, id);
    const judged = await judge(ports, { id, change: patch, headers, present: kept.destination });
    if (judged.kind === "refused") return judged;
    const changed = await ports.store.change(kept.destination, judged.value);
    if (changed === "stale") return refusal("conflict");
    return changed === "taken" ? refusal("name_taken") : found(await ports.store.find(id));
  };

interface Judged {
  readonly id: OtlpDestinationId;
  readonly change: OtlpDestinationPatch;
  readonly headers: HeaderValues;
  readonly present?: OtlpDestination;
}

/** A destination as it is to be kept, or every fault of what was sent. */
async function judge(
  ports: OtlpDestinationPorts,
  { id, change, headers, present }: Judged,
): Promise<Done<KeptDestination> | Refusal> {
  const faults: FieldFaults = [];
  const name = change.name ?? present?.name ?? "";
  if (findOtlpDestinationId(name)) fieldFault(faults, "name", "must not look like an id");
  const description = change.description ?? present?.description ?? "";
  const endpoint = change.endpoint === undefined ? undefined : parseEndpoint(faults, change.endpoint);
  const why = endpoint && (await ports.whyClosed(endpoint));
  if (why !== undefined) fieldFault(faults, "endpoint", why);
  const merged = mergeHeaders(faults, headers, change.headers ?? {});
  if (faults.length > 0) return refusal("bad_request", { details: faults });
  const headerNames = Object.keys(merged).toSorted();
  return done({
    name,
    record: {
      endpoint: endpoint ? textOf(endpoint) : (present?.endpoint ?? ""),
      headerNames,
      ...(description !== "" && { description }),
    },
    ...(headerNames.length > 0 && { sealed: ports.seal.close(JSON.stringify(merged), id) }),
  });
}

/** A URL's text has a slash where its path is empty. */
const textOf = ({ origin, pathname }: URL): string => origin + pathname.replace(/\/$/, "");

const shownSessions = 20;
const inUseBy = (message: string): Detail => ({ code: "resource_in_use", message });

/**
 * Refused while a pool names it, or a session exports to it. A session that comes to do so at this very
 * moment is left with a destination that is gone: its events are counted as lost.
 */
const makeRemove =
  (ports: OtlpDestinationPorts): OtlpDestinationOperations["remove"] =>
  async (ref) => {
    const destination = await findDestination(ports, ref);
    if (!destination) return notFound;
    const { details = [] } = (await refuseInUse(ports, "", destination.id)) ?? {};
    const sessions = (await ports.exportingSessions(destination.id)).slice(0, shownSessions);
    const users = [...details, ...sessions.map((id) => inUseBy(`session ${id}`))];
    if (users.length > 0) return refusal("otlp_destination_in_use", { details: users });
    // Missing by now: this very command was sent again after a broken connection, or another came before it.
    await ports.store.remove(destination.id);
    return done(null);
  };

/** Opens a destination for whoever sends to it; undefined: there is none. Throws `secret_unreadable`. */
export async function openDestination(
  { store, seal }: DestinationRecords,
  id: OtlpDestinationId,
): Promise<OpenedDestination | undefined> {
  const kept = await store.findSealed(id);
  if (!kept) return undefined;
  const { endpoint, revision } = kept.destination;
  const values = Object.entries(openHeaders(seal, kept.sealed, id));
  return {
    endpoint,
    revision,
    headers: Object.fromEntries(values.map(([name, value]) => [name, new Secret(value)])),
  };
}

function openHeaders(seal: Seal, sealed: string | undefined, id: OtlpDestinationId): HeaderValues {
  if (sealed === undefined) return {};
  const what = `The headers of OTLP destination ${id}`;
  return headerValuesParser.json(openSealed(seal, { sealed, owner: id, what, remedy: "create it anew" }));
}
