import { type ErrorCode, errors } from "../../base/errors.js";

interface Success {
  readonly status: 200 | 201 | 202 | 204;
  readonly description: string;
  /** `$id` of a component; a list of them where `isList`. */
  readonly component?: string;
  readonly isList?: boolean;
  readonly contentType?: string;
}

export interface Operation {
  readonly tag: string;
  readonly summary: string;
  readonly success: readonly Success[];
  /** Beyond what every operation can answer. */
  readonly failures?: readonly ErrorCode[];
  /** Set where the operation needs no key. */
  readonly isOpen?: boolean;
  readonly takesBody?: boolean;
  /** Set where the body is `multipart/form-data`. */
  readonly takesParts?: boolean;
}

interface OperationSchema {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: string[];
  readonly security?: [];
  readonly response: Record<number, object>;
}

export const reply = (status: 200 | 201, component: string, description: string): readonly Success[] => [
  { status, description, component },
];

export const onePage = (component: string): readonly Success[] => [
  { status: 200, description: "One page; its headers tell where the next begins", component, isList: true },
];

export const noContent = (description: string): readonly Success[] => [{ status: 204, description }];

/**
 * What each route says of itself in the OpenAPI document; its body, params and query stand beside it in the
 * route.
 */
export const describeOperations = <Id extends string>(
  operations: Record<Id, Operation>,
): Record<Id, OperationSchema> =>
  Object.fromEntries(
    Object.entries<Operation>(operations).map(([id, operation]) => [id, describe(id, operation)]),
  ) as Record<Id, OperationSchema>;

const describe = (operationId: string, operation: Operation): OperationSchema => ({
  operationId,
  summary: operation.summary,
  tags: [operation.tag],
  ...(operation.isOpen && { security: [] }),
  response: {
    ...Object.fromEntries(operation.success.map(successReply)),
    ...failureReplies(codesOf(operation)),
  },
});

const codesOf = ({ isOpen, takesBody, takesParts, failures = [] }: Operation): readonly ErrorCode[] => [
  ...common,
  ...(isOpen ? [] : ofCredentials),
  ...(takesBody ? ofBodies : []),
  ...(takesParts ? ofParts : []),
  ...failures,
  // What is refused where it cannot be recorded may also be done before that is known.
  ...(failures.includes("audit_unavailable") ? (["audit_unconfirmed"] as const) : []),
];
const common: readonly ErrorCode[] = ["bad_request", "internal"];
const ofCredentials: readonly ErrorCode[] = [
  "unauthorized",
  "insufficient_scope",
  "project_not_found",
  "rate_limit_exceeded",
  "unavailable",
  "store_unavailable",
];
const ofBodies: readonly ErrorCode[] = ["invalid_json", "unsupported_media_type", "body_too_large"];
const ofParts: readonly ErrorCode[] = ["unsupported_media_type"];

function successReply({ status, description, component, isList, contentType }: Success): [number, object] {
  if (contentType !== undefined)
    return [status, { description, content: { [contentType]: { schema: { type: "string" } } } }];
  if (component === undefined) return [status, { description, type: "null" }];
  const ref = { $ref: `${component}#` };
  return [
    status,
    {
      description,
      content: { "application/json": { schema: isList ? { type: "array", items: ref } : ref } },
    },
  ];
}

function failureReplies(codes: readonly ErrorCode[]): Record<number, object> {
  const statuses = [...new Set(codes.map((code) => errors[code].status))];
  return Object.fromEntries(
    statuses.map((status) => [status, failureReply(codes.filter((code) => errors[code].status === status))]),
  );
}

const failureReply = (codes: readonly ErrorCode[]): object => ({
  description: codes.map((code) => `\`${code}\`: ${errors[code].message}`).join("; "),
  content: { "application/json": { schema: { $ref: "Error#" } } },
});
