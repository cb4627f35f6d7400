import type { AwsSettings } from "../../audit/export/aws-buckets.js";
import type { Buckets } from "../../audit/export/buckets.js";
import { makeDestinationOperations } from "../../audit/export/destination-operations.js";
import type { DestinationOperations } from "../../audit/export/destination.js";
import { makeTrial } from "../../audit/export/trial.js";
import type { DaemonParts } from "../shared.js";

/** Whom the audit log is delivered to. */
export function openDestinations(shared: DaemonParts): DestinationOperations {
  const { assumeRole: assumesRoles, serviceRoleArn } = shared.config.audit.export;
  const buckets = bucketsOf(shared);
  return makeDestinationOperations({
    store: shared.stores.destinations,
    assumesRoles,
    serviceRoleArn,
    attempt: makeTrial({ buckets, assumesRoles }),
  });
}

/** The clients are large, and of no use to a deployment that exports to nobody. */
function bucketsOf(shared: DaemonParts): Buckets {
  let loaded: Promise<Buckets> | undefined;
  const load = async (): Promise<Buckets> => {
    const { AwsBuckets } = await import("../../audit/export/aws-buckets.js");
    return new AwsBuckets(settingsOf(shared));
  };
  const buckets = (): Promise<Buckets> => (loaded ??= load());
  return {
    open: async (...asked) => (await buckets()).open(...asked),
    isOpenToAll: async (destination) => (await buckets()).isOpenToAll(destination),
  };
}

function settingsOf({ config, clock }: DaemonParts): AwsSettings {
  const { assumeRole, s3Endpoint, stsEndpoint, limitMs } = config.audit.export;
  const { s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey, ...archives } = config.archives;
  const isOwn = !assumeRole && s3Endpoint === null;
  const credentials = accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
  return {
    assumesRoles: assumeRole,
    // Who assumes roles is Amazon's to know, and the archives may be elsewhere.
    credentials: assumeRole ? undefined : credentials,
    s3Endpoint: (isOwn ? archives.s3Endpoint : s3Endpoint) ?? undefined,
    stsEndpoint: stsEndpoint ?? undefined,
    isPathStyle: isOwn ? archives.s3PathStyle : s3Endpoint !== null,
    limitMs,
    clock,
  };
}
