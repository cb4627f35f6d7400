import { Type } from "typebox";
import { bounds, Name, regions } from "../../spec/bodies.js";

const closed = { additionalProperties: false } as const;

/** The body of operations that take no field at all. */
export const NoFields = Type.Object({}, closed);
export const PoolDelete = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed);

/** The fields are parts of a form. */
export const ExtensionCreate = Type.Object(
  {
    file: Type.String({
      contentMediaType: "application/octet-stream",
      description:
        "A zip of the unpacked extension, its manifest.json at the root or in the only folder there",
    }),
    name: Type.Optional(Name),
  },
  closed,
);

/**
 * Parts of a form, as the official client calls them; clients of other languages do otherwise
 * (extension-parts.ts).
 */
export const SessionExtensions = Type.Object(
  {
    extensions: Type.Array(
      Type.Object(
        {
          name: Name,
          zip_file: Type.String({
            contentMediaType: "application/octet-stream",
            description: "As `file` of POST /extensions",
          }),
        },
        closed,
      ),
      { minItems: 1, maxItems: bounds.extensions },
    ),
  },
  closed,
);

export const ProfileCreate = Type.Object({ name: Type.Optional(Name) }, closed);
export const ProfilePatch = Type.Object({ name: Name }, closed);

export const PoolRef = Type.Object({
  id_or_name: Type.String({ description: "The pool's id or its name; ids win" }),
});
export const ProxyRefParams = Type.Object({
  id: Type.String({ description: "The proxy's id; its name is none" }),
});
export const ExtensionRefParams = Type.Object({
  id_or_name: Type.String({ description: "The extension's id or its name; ids win" }),
});
export const ProfileRefParams = Type.Object({
  id_or_name: Type.String({ description: "The profile's id or its name; ids win" }),
});
export const SessionRef = Type.Object({
  id_or_name: Type.String({ description: "The session's id or its name; ids win" }),
});

const paging = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
};
const text = (description: string) => Type.Optional(Type.String({ maxLength: 255, description }));
const byName = {
  name: text("The whole name, without regard to case and accents"),
  query: text("A part of the name, or the id"),
};
const region = Type.Optional(Type.Enum([...regions]));

/**
 * Query keys that are not known are ignored, unlike fields of a body: newer clients filter by more, and
 * proxies and caches add keys of their own; a read changes nothing.
 */
export const PoolQuery = Type.Object({ ...paging, ...byName, region });
export const ExtensionQuery = Type.Object({ ...paging, ...byName });
export const StoreQuery = Type.Object({
  url: Type.String({
    maxLength: 2048,
    description: "Where the Chrome Web Store shows the extension, or the extension's id there",
  }),
  os: Type.Optional(Type.Enum(["win", "mac", "linux"], { default: "linux" })),
});
export const ProfileQuery = Type.Object({ ...paging, ...byName });
export const ProfileDownload = Type.Object({
  format: Type.Optional(
    Type.Enum(["tar.zst", "tar"], { default: "tar.zst", description: "`tar`: not compressed" }),
  ),
});
export const ProjectRefParams = Type.Object({ id: Type.String({ description: "The project's id or name" }) });
export const ProjectQuery = Type.Object({ ...paging, ...byName });
export const ApiKeyRefParams = Type.Object({ id: Type.String({ description: "The API key's id" }) });
const includeDeleted = (description: string, more: object = {}) =>
  Type.Optional(Type.Boolean({ default: false, description, ...more }));
export const ApiKeyGetQuery = Type.Object({
  include_deleted: includeDeleted("Whether a deleted key is read as well"),
});
export const ApiKeyQuery = Type.Object({
  ...paging,
  name: byName.name,
  query: text("A part of the name, the creator or the project, or how the id or the masked key begins"),
  sort_by: Type.Optional(Type.Enum(["created_at", "name", "expires_at"], { default: "created_at" })),
  sort_direction: Type.Optional(Type.Enum(["asc", "desc"], { default: "desc" })),
  status: Type.Optional(
    Type.Enum(["active", "deleted", "all"], {
      default: "active",
      description: "`active`: those that are not deleted; one that has expired is listed",
    }),
  ),
  include_deleted: includeDeleted("As status=all", { deprecated: true }),
});
export const ProxyQuery = Type.Object(paging);
export const SessionQuery = Type.Object({
  ...paging,
  status: Type.Optional(Type.Enum(["active", "deleted", "all"], { default: "active" })),
  include_deleted: Type.Optional(Type.Boolean({ deprecated: true, description: "As status=all" })),
  query: text("A part of the name, of the pool's or the profile's name, or an id"),
  region,
  tags: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: 256 }), {
      maxProperties: bounds.tags,
      description: "tags[key]=value; every one must be equal",
    }),
  ),
});
const instant = (description: string) => Type.String({ maxLength: 64, description });
/** Lists of texts are separated by commas, as the official client sends them. */
const auditFilter = {
  start: instant("From when on, as RFC 3339 has it"),
  end: instant("Until when, not included; at most 30 days after `start`"),
  auth_strategy: Type.Optional(Type.Enum(["api_key", "dashboard", "oauth", "lease", "form", "none"])),
  service: text("The service whose requests are meant: all are `api`"),
  method: text("The HTTP method"),
  exclude_method: Type.Optional(Type.String({ maxLength: 1024, description: "Up to 10 methods" })),
  search: text("A part of the path, user id, e-mail address, client's address or status"),
  search_user_id: Type.Optional(
    Type.String({ maxLength: 6500, description: "Up to 100 users, found as well as what `search` finds" }),
  ),
};
export const AuditQuery = Type.Object({
  ...auditFilter,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 })),
  page_token: text("What the page before gave as X-Next-Page-Token"),
});
export const AuditChunkQuery = Type.Object({
  ...auditFilter,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50_000, default: 50_000 })),
  cursor: text("What the chunk before gave as X-Next-Cursor"),
  format: Type.Optional(Type.Enum(["jsonl", "jsonl.gz"], { default: "jsonl.gz" })),
});
export const DestinationRefParams = Type.Object({
  id: Type.String({ description: "The export destination's id" }),
});
export const DestinationQuery = Type.Object(paging);
export const NodeQuery = Type.Object(paging);
export const NodeRefParams = Type.Object({ id: Type.String({ description: "The node's id" }) });
export const NodeDrain = Type.Object(
  {
    limit_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        default: 540,
        description: "Leases that are alive after so long are ended",
      }),
    ),
  },
  closed,
);
export const OtlpDestinationRefParams = Type.Object({
  id_or_name: Type.String({ description: "The OTLP destination's id or its name" }),
});
export const OtlpDestinationQuery = Type.Object({
  ...paging,
  name: byName.name,
  query: text("A part of the name or of the endpoint, or the id"),
});
export const VaultRefParams = Type.Object({
  id_or_name: Type.String({ description: "The vault's id or its name" }),
});
export const VaultItemRefParams = Type.Object({
  ...VaultRefParams.properties,
  key: Type.String({ description: "The item's key, which it was given when it was made" }),
});
export const VaultListQuery = Type.Object({ ...paging, ...byName });
const wait = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 60, default: 0, description: "Seconds that the answer may wait" }),
);
export const VaultItemQuery = Type.Object({ expand: Type.Optional(Type.Enum(["payment_methods"])), wait });
export const VaultItemRemovalQuery = Type.Object({
  expected_item_id: text("The id of the item that is meant; 409 where the key has another by now"),
});
export const VaultEventsQuery = Type.Object({ after: text("The id of the last event that is known"), wait });
const words = Type.String({ pattern: "^\\w{1,64}(,\\w{1,64})*$", maxLength: 4096 });
const names = (description: string) =>
  Type.Optional(
    Type.Union([words, Type.Array(words)], {
      description: `${description}; several are separated by commas, or the parameter is repeated`,
    }),
  );
export const StreamQuery = Type.Object({
  replay: text("`all`: from the oldest event that is left; `Last-Event-ID` goes before it"),
  type: names("Only events of these types"),
});
export const EventsQuery = Type.Object({
  limit: paging.limit,
  offset: text("Where the page begins: what the page before gave as X-Next-Offset"),
  since: text("From when on, as RFC 3339 has it, or how long ago, as 5m; 5m without it. Not with order=desc"),
  until: text("Until when, not included, in the same forms"),
  category: names("Only events of these categories"),
  type: names("Only events of these types"),
  order: Type.Optional(Type.Enum(["asc", "desc"], { default: "asc" })),
});
export const SessionGetQuery = Type.Object({
  include_deleted: Type.Optional(Type.Boolean({ default: false })),
});
