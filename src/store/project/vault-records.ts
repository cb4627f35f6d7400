import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import { type RequestId, VaultId, VaultItemId } from "../../base/ids.js";
import { parserOf } from "../../base/parser.js";
import {
  type CollectionLink,
  type ItemEvent,
  itemEventNames,
  type StoredValue,
  type VaultItem,
} from "../../vault/item.js";
import {
  type KnownLink,
  itemRecordParser,
  type ItemWrite,
  type OfferedLink,
  storedValuesParser,
} from "../../vault/vault.js";
import type { ScriptArgs } from "../redis/script-call.js";

/** How long a link to a form holds. */
const linkMs: Millis = 1_800_000;
/** For so long after its end it is known why a link opens nothing. */
const toldMs: Millis = 86_400_000;
/** Events of one item, and how long they are kept after the last. */
const eventsKept = 1000;
const eventsMs: Millis = 30 * 86_400_000;

export const eventArgs = (event: string, request: RequestId): ScriptArgs => ({
  event,
  request,
  eventsKept,
  eventsMs,
});

export const linkArgs = (link: OfferedLink | undefined): ScriptArgs => ({
  nonce: link?.nonce ?? "",
  linkMs,
  toldMs,
});

export const itemArgs = (vault: VaultId, item: ItemWrite): ScriptArgs => ({
  vault,
  id: item.id,
  key: item.key,
  version: item.version,
  record: JSON.stringify({ spec: item.spec, createdAs: item.createdAs }),
  values: JSON.stringify(Object.fromEntries(item.values)),
  ...linkArgs(item.link),
  ...eventArgs(item.event, item.request),
});

interface ItemTexts {
  readonly text: string;
  readonly values: string | null;
  readonly link: string | null;
}
const itemIdParser = parserOf("the id of a vault's item", VaultItemId);

/** As src/store/lua/include/vault/vault-items.lua has it. */
export function parseItem(key: string, { text, values, link }: ItemTexts): VaultItem | undefined {
  const [, id, version, createdAt, updatedAt, record] =
    /^(\S+) (\d+) (\d+) (\d+) \S+ (.*)$/s.exec(text) ?? [];
  if (record === undefined) return undefined;
  return {
    id: itemIdParser.value(id),
    key,
    version: Number(version),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    ...itemRecordParser.json(record),
    values: new Map<string, StoredValue>(
      values === null ? [] : Object.entries(storedValuesParser.json(values)),
    ),
    link: linkOf(link ?? undefined),
  };
}

export function linkOf(text: string | undefined): CollectionLink | undefined {
  const [version, expiresAt, nonce] = (text ?? "").split(" ");
  if (!version || !expiresAt || !nonce) return undefined;
  return { version: Number(version), expiresAt: Number(expiresAt), nonce };
}

const LinkRecord = Type.Object({
  vault: VaultId,
  item: VaultItemId,
  key: Type.String(),
  version: Type.Integer(),
  expiresAt: Type.Number(),
});
const linkRecordParser = parserOf("a link to a form", LinkRecord);

export function parseKnownLink(text: string | null): KnownLink {
  if (text === null) return { kind: "gone" };
  const [, submission] = /^used ?(\S*)$/.exec(text) ?? [];
  return submission === undefined
    ? { kind: "known", ...linkRecordParser.json(text) }
    : { kind: "used", submission };
}

const EventData = Type.Object({
  browserId: Type.Optional(Type.String()),
  data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const eventDataParser = parserOf("an event of a vault's item", EventData);

export function eventOf(id: string, fields: readonly string[]): ItemEvent | undefined {
  const name = itemEventNames.find((one) => one === fields[1]);
  const data = fields[5] ?? "";
  if (name === undefined) return undefined;
  const more: Static<typeof EventData> = data === "" ? {} : eventDataParser.json(data);
  return { id, createdAt: Number(id.split("-")[0]), name, ...more };
}
