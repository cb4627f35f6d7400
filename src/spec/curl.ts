import { type Static, Type } from "typebox";

export const curlPatterns = {
  method: "^[A-Za-z]{1,20}$",
  headerName: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$",
  headerValue: "^[\\t\\x20-\\x7e\\x80-\\xff]*$",
} as const;

/**
 * The body of POST /browsers/{id}/curl (docs/api.md#operations). It stands here because the API and the
 * browser's node both read it.
 */
export const CurlBody = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 8192 }),
    method: Type.Optional(
      Type.String({ pattern: curlPatterns.method, default: "GET", description: "Any but CONNECT and TRACE" }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 65_536, pattern: curlPatterns.headerValue }), {
        maxProperties: 100,
        propertyNames: { pattern: curlPatterns.headerName },
      }),
    ),
    body: Type.Optional(Type.String({ maxLength: 1024 * 1024 })),
    timeout_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 60_000, default: 30_000 })),
    response_encoding: Type.Optional(Type.Enum(["utf8", "base64"], { default: "utf8" })),
  },
  { additionalProperties: false },
);

export type CurlBody = Static<typeof CurlBody>;

/** What the destination answered. A header that came more than once has a list of its values. */
export const CurlReply = Type.Object(
  {
    status: Type.Integer(),
    headers: Type.Record(Type.String(), Type.Array(Type.String())),
    body: Type.String({ description: "In the encoding that was asked for" }),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { $id: "CurlResponse" },
);

export type CurlReply = Static<typeof CurlReply>;
