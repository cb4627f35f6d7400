import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import type { Done, Refusal } from "../../base/errors.js";
import { DestinationId, type RequestId } from "../../base/ids.js";
import { parserOf } from "../../base/parser.js";
import type { Position } from "../entry.js";

const closed = { additionalProperties: false } as const;
const Text = (minLength: number, maxLength: number) => Type.String({ minLength, maxLength });
const place = {
  region: Text(1, 128),
  bucket: Text(3, 63),
  prefix: Type.String({ maxLength: 512, description: "Before every object's name; may be empty" }),
  role_arn: Text(1, 2048),
};
const KmsKey = (description: string) =>
  Type.Optional(Type.Union([Type.String({ maxLength: 2048 }), Type.Null()], { description }));

/** POST /audit-logs/export/destinations (docs/audit.md#export-destinations). */
export const DestinationCreate = Type.Object(
  {
    type: Type.Enum(["s3"]),
    format: Type.Enum(["jsonl.gz"]),
    ...place,
    kms_key_id: KmsKey("Id, alias or ARN of the KMS key that encrypts the objects"),
  },
  closed,
);
const destinationStatuses = ["active", "paused"] as const;
export const DestinationPatch = Type.Object(
  {
    ...Type.Partial(Type.Object(place)).properties,
    kms_key_id: KmsKey("As at the creation; an empty text removes it, null leaves it"),
    status: Type.Optional(Type.Enum([...destinationStatuses])),
  },
  closed,
);
export type DestinationCreate = Static<typeof DestinationCreate>;
export type DestinationPatch = Static<typeof DestinationPatch>;

const placeFields = {
  region: Type.String(),
  bucket: Type.String(),
  prefix: Type.String(),
  roleArn: Type.String(),
  kmsKeyId: Type.Optional(Type.String()),
};
const PlaceFields = Type.Object(placeFields);
/** Where objects are put, and as whom. */
export type DestinationPlace = Readonly<Static<typeof PlaceFields>>;

/** Where the log is delivered to, and how far it has been. Instants are Redis's. */
const Destination = Type.Object({
  id: DestinationId,
  ...placeFields,
  externalId: Type.String(),
  status: Type.Enum([...destinationStatuses]),
  /** Raised by each change through the API; a delivery notes nothing once it is another. */
  revision: Type.Integer(),
  createdAt: Type.Number(),
  updatedAt: Type.Number(),
  deletedAt: Type.Optional(Type.Number()),
  /** While it is active: entries up to this position are delivered, or older than the activation. */
  cursor: Type.Optional(Type.Unsafe<Position>(Type.String({ pattern: "^\\d{13}-\\d{6}$" }))),
  failures: Type.Integer({ minimum: 0 }),
  lastError: Type.Optional(Type.String()),
  lastErrorAt: Type.Optional(Type.Number()),
  lastSuccessAt: Type.Optional(Type.Number()),
  /** Nothing is tried before. */
  nextAttemptAt: Type.Optional(Type.Number()),
});
export type Destination = Readonly<Static<typeof Destination>>;
export const destinationParser = parserOf("the record of an export destination", Destination);

export interface NewDestination extends DestinationPlace {
  readonly id: DestinationId;
  readonly externalId: string;
}
export interface DestinationChange extends DestinationPlace {
  readonly status: Destination["status"];
}

/** Keeps destinations of the organization. */
export interface DestinationStore {
  /** Paused; `many`: there are as many as there may be. */
  create(destination: NewDestination): Promise<Destination | "many">;
  find(id: DestinationId): Promise<Destination | undefined>;
  /** All that are not deleted, the newest first. */
  all(): Promise<readonly Destination[]>;
  /**
   * Where it is still of this revision. One that becomes active is delivered to from now on; one that is
   * paused has no cursor.
   */
  change(
    of: Pick<Destination, "id" | "revision">,
    change: DestinationChange,
  ): Promise<Destination | "stale" | "missing">;
  remove(id: DestinationId, request: RequestId): Promise<"deleted" | "missing">;
  /** Redis's time, by which entries stand in the log. */
  now(): Promise<Millis>;
  /** Where it is active, of this revision, and its cursor still the one that is given. */
  move(destination: Destination, to: Position, how: Progress): Promise<"moved" | "stale">;
  /** Counts a failure, after which nothing is tried for so long. */
  fail(
    destination: Pick<Destination, "id" | "revision">,
    failure: { readonly why: string; readonly delayMs: Millis },
  ): Promise<"noted" | "stale">;
}

/** Why a cursor is moved: objects were put, there was nothing to deliver, or it is there no more. */
export type Progress = "delivered" | "nothing" | { readonly lost: string };

/** What a trial of a destination has come to: at which stage it has failed, and why. */
export type Trial =
  | { readonly stage: "complete" }
  | { readonly stage: "assume_role" | "put_object"; readonly why: string };

/** What the operations of /audit-logs/export/destinations do. Every refusal has changed nothing. */
export interface DestinationOperations {
  create(body: DestinationCreate): Promise<Done<Destination> | Refusal>;
  all(): Promise<readonly Destination[]>;
  get(ref: string): Promise<Done<Destination> | Refusal>;
  update(ref: string, patch: DestinationPatch): Promise<Done<Destination> | Refusal>;
  remove(ref: string, request: RequestId): Promise<Done<null> | Refusal>;
  /** Puts an object there and removes it again. */
  test(ref: string): Promise<Done<Trial> | Refusal>;
  /** Who assumes the destinations' roles; empty where nobody does. */
  readonly serviceRoleArn: string;
}
