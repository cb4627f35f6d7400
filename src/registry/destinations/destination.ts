import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import type { Secret } from "../../base/crypto/secret.js";
import type { Done, Refusal } from "../../base/errors.js";
import type { OtlpDestinationId } from "../../base/ids.js";
import { parserOf, readonlyList } from "../../base/parser.js";
import { Name } from "../../spec/bodies.js";
import type { Page } from "../../spec/paging.js";
import type { NamedQuery } from "../extensions/extension.js";

export const otlpDestinationBounds = {
  endpointLength: 2048,
  descriptionLength: 1024,
  /** Names and values together. */
  headerBytes: 8192,
} as const;

const closed = { additionalProperties: false } as const;
const Endpoint = Type.String({
  minLength: 1,
  maxLength: otlpDestinationBounds.endpointLength,
  description:
    "Where the collector takes OTLP over HTTP, without /v1/logs; it has to resolve to public addresses",
});
const Description = Type.Optional(Type.String({ maxLength: otlpDestinationBounds.descriptionLength }));

/** POST /telemetry/destinations (docs/telemetry.md#destinations). */
export const OtlpDestinationCreate = Type.Object(
  {
    name: Name,
    endpoint: Endpoint,
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "Sent with each request; kept encrypted, and never shown again",
      }),
    ),
    description: Description,
  },
  closed,
);
export const OtlpDestinationPatch = Type.Object(
  {
    name: Type.Optional(Name),
    endpoint: Type.Optional(Endpoint),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), {
        description: "Merged with those that there are; null deletes one",
      }),
    ),
    description: Description,
  },
  closed,
);
export type OtlpDestinationCreate = Static<typeof OtlpDestinationCreate>;
export type OtlpDestinationPatch = Static<typeof OtlpDestinationPatch>;

/** What there is to know of a destination, but for the values of its headers. */
const OtlpDestinationRecord = Type.Object({
  endpoint: Type.String(),
  /** In the usual spelling, such as `Authorization`. */
  headerNames: readonlyList(Type.String()),
  description: Type.Optional(Type.String()),
});
type OtlpDestinationRecord = Readonly<Static<typeof OtlpDestinationRecord>>;
export const otlpDestinationRecordParser = parserOf(
  "the record of an OTLP destination",
  OtlpDestinationRecord,
);

const HeaderValues = Type.Record(Type.String(), Type.String());
export type HeaderValues = Readonly<Static<typeof HeaderValues>>;
export const headerValuesParser = parserOf("the headers of an OTLP destination", HeaderValues);

/** How the deliveries stand, as the node that delivered last has noted. */
export interface DeliveryHealth {
  /** How many have failed since the last that did not. */
  readonly failures: number;
  readonly lastExportAt?: Millis;
  readonly lastErrorAt?: Millis;
  /** One of a fixed set of sentences. */
  readonly lastError?: string;
}

/** A collector to which telemetry is sent. Instants are Redis's. */
export interface OtlpDestination extends OtlpDestinationRecord {
  readonly id: OtlpDestinationId;
  readonly name: string;
  /** Raised by each change through the API. */
  readonly revision: number;
  readonly createdAt: Millis;
  readonly updatedAt: Millis;
  readonly health: DeliveryHealth;
}

/** A destination with its headers open: where requests go, and with what. */
export interface OpenedDestination {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly revision: number;
}

export interface KeptDestination {
  readonly record: OtlpDestinationRecord;
  readonly name: string;
  /** Absent where there are no headers. */
  readonly sealed?: string;
}

/** Keeps the destinations of a project. */
export interface OtlpDestinationStore {
  /** `many`: there are as many as there may be. A repeat with the same id changes nothing. */
  create(
    ask: KeptDestination & { readonly id: OtlpDestinationId; readonly most: number },
  ): Promise<"created" | "taken" | "many">;
  find(id: OtlpDestinationId): Promise<OtlpDestination | undefined>;
  findNamed(name: string): Promise<OtlpDestinationId | undefined>;
  /** With its sealed headers, both of one revision. */
  findSealed(
    id: OtlpDestinationId,
  ): Promise<{ readonly destination: OtlpDestination; readonly sealed?: string } | undefined>;
  /** The newest come first. */
  all(): Promise<readonly OtlpDestination[]>;
  /** Where it is still of this revision. */
  change(
    of: Pick<OtlpDestination, "id" | "revision">,
    kept: KeptDestination,
  ): Promise<"changed" | "missing" | "stale" | "taken">;
  remove(id: OtlpDestinationId): Promise<"removed" | "missing">;
  /** Notes what came of a delivery; one of a destination that is gone is nowhere noted. */
  noteDelivery(id: OtlpDestinationId, error: string | undefined): Promise<void>;
}

/** What the operations of /telemetry/destinations do. Every refusal has changed nothing. */
export interface OtlpDestinationOperations {
  create(body: OtlpDestinationCreate): Promise<Done<OtlpDestination> | Refusal>;
  list(query: NamedQuery): Promise<Page<OtlpDestination>>;
  get(ref: string): Promise<Done<OtlpDestination> | Refusal>;
  update(ref: string, patch: OtlpDestinationPatch): Promise<Done<OtlpDestination> | Refusal>;
  remove(ref: string): Promise<Done<null> | Refusal>;
}
