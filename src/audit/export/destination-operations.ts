import { randomBytes } from "node:crypto";
import { toBase62 } from "../../base/crypto/base62.js";
import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { findDestinationId, newDestinationId } from "../../base/ids.js";
import { mergedPlace, placeFaults, placeOf } from "./destination-rules.js";
import type {
  Destination,
  DestinationOperations,
  DestinationStore,
  DestinationPlace,
  Trial,
} from "./destination.js";

interface DestinationPorts {
  readonly store: DestinationStore;
  /** Whether destinations' roles are assumed; else the deployment's own credentials put objects. */
  readonly assumesRoles: boolean;
  /** Who assumes them. */
  readonly serviceRoleArn: string | null;
  /** Tries to put an object there. */
  attempt(destination: Destination): Promise<Trial>;
}

export const makeDestinationOperations = (ports: DestinationPorts): DestinationOperations => ({
  create: makeCreate(ports),
  all: () => ports.store.all(),
  get: (ref) => findLiving(ports, ref),
  update: makeUpdate(ports),
  remove: makeRemove(ports),
  test: makeTest(ports),
  serviceRoleArn: ports.serviceRoleArn ?? "",
});

const notFound = refusal("not_found", { message: "There is no such export destination" });
const externalIdLength = 32;
const newExternalId = (): string => toBase62(randomBytes(externalIdLength), externalIdLength);

/** Why the log is delivered to nobody here. */
const whyUnsupported = ({ assumesRoles, serviceRoleArn }: DestinationPorts): Refusal | undefined =>
  assumesRoles && serviceRoleArn === null
    ? refusal("not_supported", {
        message:
          "This deployment exports to nobody: neither audit.export.service_role_arn is set, " +
          "nor is audit.export.assume_role false",
      })
    : undefined;

function whyWrong(ports: DestinationPorts, place: DestinationPlace): Refusal | undefined {
  const details = placeFaults(place, { isCommercial: ports.assumesRoles });
  return details.length > 0 ? refusal("bad_request", { details }) : undefined;
}

const makeCreate =
  (ports: DestinationPorts): DestinationOperations["create"] =>
  async (body) => {
    const place = placeOf(body);
    const refused = whyUnsupported(ports) ?? whyWrong(ports, place);
    if (refused) return refused;
    const made = await ports.store.create({ id: newDestinationId(), externalId: newExternalId(), ...place });
    return made === "many"
      ? refusal("limit_exceeded", {
          message: "The organization has as many export destinations as it may have",
        })
      : done(made);
  };

async function findLiving({ store }: DestinationPorts, ref: string): Promise<Done<Destination> | Refusal> {
  const id = findDestinationId(ref);
  const found = id && (await store.find(id));
  return found && found.deletedAt === undefined ? done(found) : notFound;
}

/** What was judged is what is kept: a change that came between is a conflict. */
const makeUpdate =
  (ports: DestinationPorts): DestinationOperations["update"] =>
  async (ref, patch) => {
    const found = await findLiving(ports, ref);
    if (found.kind === "refused") return found;
    const place = mergedPlace(found.value, patch);
    const status = patch.status ?? found.value.status;
    const refused = whyWrong(ports, place) ?? (status === "active" ? whyUnsupported(ports) : undefined);
    if (refused) return refused;
    const changed = await ports.store.change(found.value, { ...place, status });
    if (changed === "missing") return notFound;
    return changed === "stale" ? refusal("conflict") : done(changed);
  };

const makeRemove =
  (ports: DestinationPorts): DestinationOperations["remove"] =>
  async (ref, request) => {
    const id = findDestinationId(ref);
    return id && (await ports.store.remove(id, request)) === "deleted" ? done(null) : notFound;
  };

/** The most tests at once; each makes some requests to servers of others. */
const testsAtOnce = 4;

function makeTest(ports: DestinationPorts): DestinationOperations["test"] {
  let tests = 0;
  return async (ref) => {
    const found = await findLiving(ports, ref);
    if (found.kind === "refused") return found;
    const unsupported = whyUnsupported(ports);
    if (unsupported) return unsupported;
    if (tests >= testsAtOnce) return refusal("too_many_requests", { message: "Other tests are under way" });
    tests += 1;
    try {
      return done(await ports.attempt(found.value));
    } finally {
      tests -= 1;
    }
  };
}
