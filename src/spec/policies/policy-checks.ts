import { isRecord } from "../../base/is-record.js";
import { bounds, type Network } from "../bodies.js";
import { fieldFault, type FieldFaults } from "../field-checks.js";
import { barringValues, managedPolicies, urlPolicies } from "./managed-policies.js";
import { policyNames } from "./policy-table.js";

type EnterprisePolicy = Readonly<Record<string, unknown>>;
type PolicyKind = keyof typeof policyNames;

const kindsOf = (kinds: typeof policyNames): ReadonlyMap<string, PolicyKind> =>
  new Map(
    (Object.keys(kinds) as PolicyKind[]).flatMap((kind) => kinds[kind].map((name) => [name, kind] as const)),
  );
const kindOf = kindsOf(policyNames);

const isOfKind: Record<PolicyKind, (value: unknown) => boolean> = {
  boolean: (value) => typeof value === "boolean",
  integer: (value) => Number.isInteger(value) && Math.abs(Number(value)) < 2 ** 31,
  string: (value) => typeof value === "string",
  list: (value) => Array.isArray(value),
  dictionary: isRecord,
};
const spoken: Record<PolicyKind, string> = {
  boolean: "a boolean",
  integer: "an integer of 32 bits",
  string: "a string",
  list: "a list",
  dictionary: "a dictionary",
};

/**
 * Reports every fault of a policy: it is too large, or it has a name that the service keeps for itself or
 * that Chromium does not know, or a value of another type.
 */
export function checkPolicy(faults: FieldFaults, policy: EnterprisePolicy): void {
  const size = Buffer.byteLength(JSON.stringify(policy));
  if (size > bounds.policyBytes)
    return fieldFault(
      faults,
      "browser_policy",
      `has ${size} bytes, at most ${bounds.policyBytes} are allowed`,
    );
  const wrong = Object.entries(policy).flatMap(([name, value]) => faultOf(name, value) ?? []);
  for (const { name, what } of wrong.slice(0, mostReported))
    fieldFault(faults, `browser_policy.${shown(name)}`, what);
  if (wrong.length > mostReported)
    fieldFault(faults, "browser_policy", `has ${wrong.length - mostReported} more faults`);
}

/** Keeps the answer readable where a policy has a million names. */
const mostReported = 100;

/** Cuts a name, which is a caller's own text and may be megabytes long. */
const shown = (name: string): string => (name.length > 100 ? `${name.slice(0, 100)}…` : name);

function faultOf(name: string, value: unknown): { name: string; what: string } | undefined {
  const what = whatIsWrong(name, value);
  return what === undefined ? undefined : { name, what };
}

function whatIsWrong(name: string, value: unknown): string | undefined {
  if (urlPolicies.test(name))
    return "is managed by the service; network.allowed_hosts says what may be reached";
  if (managedPolicies.some(({ names }) => names.test(name)))
    return "is managed by the service and cannot be overridden";
  const kind = kindOf.get(name);
  if (!kind) return "is no policy that Chromium knows";
  if (!isOfKind[kind](value)) return `must be ${spoken[kind]}`;
  return barringValues.get(name) === value ? `must not be ${String(value)}: no page would open` : undefined;
}

/**
 * Policies that choose WebRTC's addresses and ports. They are refused beside an allowlist, which WebRTC must
 * not get round (docs/extensions-and-profiles.md#enterprise-policy).
 */
const webRtcPolicies = /^WebRtc(?:UdpPortRange|LocalIpsAllowedUrls)/;

export function checkWebRtc(
  faults: FieldFaults,
  policy: EnterprisePolicy | undefined,
  network: Network | undefined,
): void {
  if (!network?.allowed_hosts) return;
  for (const name of Object.keys(policy ?? {})) {
    if (webRtcPolicies.test(name))
      fieldFault(faults, `browser_policy.${name}`, "cannot be combined with network.allowed_hosts");
  }
}
