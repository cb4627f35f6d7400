import { ExportFault } from "./buckets.js";

/** What both clients throw: texts in it may repeat what was signed, and by whom. */
interface Thrown {
  readonly name: string;
  readonly status: number;
}

function partsOf(error: unknown): Thrown {
  const { name, $metadata } = (typeof error === "object" && error !== null ? error : {}) as {
    readonly name?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
  };
  const status = $metadata?.httpStatusCode;
  return { name: String(name ?? ""), status: typeof status === "number" ? status : 0 };
}

/** Whether the other side has understood who asks, and said no. */
export const isRefused = (error: unknown): boolean => {
  const { name, status } = partsOf(error);
  return status === 403 && name.startsWith("AccessDenied");
};

interface KnownFault {
  readonly form: RegExp;
  readonly why: string;
}
const assumeFaults: readonly KnownFault[] = [
  {
    form: /^RegionDisabled/,
    why: "The role could not be assumed: the region is not enabled for its account",
  },
  {
    form: /^PackedPolicyTooLarge/,
    why: "The role could not be assumed: bucket, prefix and KMS key are too long together",
  },
  {
    form: /^CredentialsProviderError$/,
    why: "The role could not be assumed: the service has no credentials of its own",
  },
];

export function assumeRoleFault(error: unknown): ExportFault {
  const { name, status } = partsOf(error);
  const known = assumeFaults.find(({ form }) => form.test(name));
  return new ExportFault("assume_role", known?.why ?? usualAssumeFault(isRefused(error), status));
}

function usualAssumeFault(isRefusal: boolean, status: number): string {
  if (isRefusal)
    return "The role could not be assumed: its trust policy has to allow the service's role with the external ID";
  return isAnswered(status)
    ? "The role could not be assumed: the service's own credentials were not accepted"
    : "The role could not be assumed: the token service could not be reached, or gave no answer";
}

/** Whether the other side has answered that the request is at fault. */
const isAnswered = (status: number): boolean => status >= 400 && status < 500;

const putFaults: readonly KnownFault[] = [
  { form: /^NoSuchBucket$/, why: "There is no such bucket" },
  { form: /^(PermanentRedirect|AuthorizationHeaderMalformed)$/, why: "The bucket is in another region" },
  { form: /^KMS/i, why: "The KMS key could not be used for the object" },
  {
    form: /^CredentialsProviderError$/,
    why: "The service has no credentials of its own to put objects with",
  },
];

export function putObjectFault(error: unknown): ExportFault {
  const { name, status } = partsOf(error);
  const known = putFaults.find(({ form }) => form.test(name));
  return new ExportFault("put_object", known?.why ?? usualPutFault(status));
}

function usualPutFault(status: number): string {
  if (status === 403)
    return "The bucket refused the object: the role has to be allowed to put it, and to use the KMS key";
  return isAnswered(status)
    ? "The bucket did not accept the object"
    : "The bucket could not be reached, or gave no answer";
}
