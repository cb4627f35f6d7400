import { AwsBuckets } from "../../../src/audit/export/aws-buckets.js";
import { makeDestinationOperations } from "../../../src/audit/export/destination-operations.js";
import type { Destination, DestinationCreate } from "../../../src/audit/export/destination.js";
import { makeTrial } from "../../../src/audit/export/trial.js";
import { positionBefore } from "../../../src/audit/entry.js";
import { systemClock } from "../../../src/base/clock.js";
import type { DestinationId } from "../../../src/base/ids.js";
import type { Done, Refusal } from "../../../src/base/errors.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { RedisDestinationStore } from "../../../src/store/organization/destination-store.js";
import { destinationBody, serviceRoleArn } from "../http/recorded-audit.js";
import type { StoreBed } from "../store/store-bed.js";
import { type Cloud, serviceCredentials } from "./cloud.js";

interface ExportBedOptions {
  readonly assumesRoles?: boolean;
  readonly serviceRoleArn?: string | null;
  readonly most?: number;
}

/** The result of what must not be refused. */
export function valueOf<Value>(got: Done<Value> | Refusal): Value {
  if (got.kind === "refused") throw new Error(`${got.code}: ${JSON.stringify(got.details ?? got.message)}`);
  return got.value;
}

/** Export destinations over a test's Redis and a cloud of its own. */
export function openExportBed({ store }: StoreBed, cloud: Cloud, options: ExportBedOptions = {}) {
  const { assumesRoles = true, most = 20 } = options;
  const destinations = new RedisDestinationStore(store, most);
  const { accessKeyId, secretAccessKey } = assumesRoles
    ? {
        accessKeyId: new Secret(serviceCredentials().AWS_ACCESS_KEY_ID),
        secretAccessKey: new Secret(serviceCredentials().AWS_SECRET_ACCESS_KEY),
      }
    : { accessKeyId: new Secret("S3RVER"), secretAccessKey: new Secret("S3RVER") };
  const buckets = new AwsBuckets({
    assumesRoles,
    credentials: { accessKeyId, secretAccessKey },
    s3Endpoint: cloud.s3Endpoint,
    stsEndpoint: cloud.stsEndpoint,
    isPathStyle: true,
    limitMs: 10_000,
    clock: systemClock,
  });
  const operations = makeDestinationOperations({
    store: destinations,
    assumesRoles,
    serviceRoleArn: options.serviceRoleArn === undefined ? serviceRoleArn : options.serviceRoleArn,
    attempt: makeTrial({ buckets, assumesRoles }),
  });
  /** As if it had been made active so long ago: a test has no time to wait for a window's end. */
  const activate = async (id: DestinationId, agoMs: number): Promise<Destination> => {
    const active = valueOf(await operations.update(id, { status: "active" }));
    const since = positionBefore((await store.now()) - agoMs);
    await destinations.move(active, since, "nothing");
    return valueOf(await operations.get(id));
  };
  return {
    destinations,
    buckets,
    operations,
    activate,
    make: async (over: Partial<DestinationCreate> = {}): Promise<Destination> =>
      valueOf(await operations.create(destinationBody(over))),
    /** One whose role lets the service in, with its external id only. */
    async trusting(over: Partial<DestinationCreate> = {}): Promise<Destination> {
      const made = valueOf(await operations.create(destinationBody(over)));
      cloud.roles.set(made.roleArn, { externalId: made.externalId });
      return made;
    },
  };
}

export type ExportBed = ReturnType<typeof openExportBed>;
