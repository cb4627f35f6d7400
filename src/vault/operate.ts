import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import type { RequestId } from "../base/ids.js";
import { fieldFault, type FieldFaults } from "../spec/field-checks.js";
import { disarmPasskey } from "./disarm-passkey.js";
import { type FillOrder, orderUntil } from "./fill.js";
import type { ItemOperation } from "./item-bodies.js";
import type { OperationType, VaultItem } from "./item.js";
import { showLinked } from "./item-reads.js";
import type { ItemOperations, Operated } from "./items.js";
import { armPasskey } from "./passkeys.js";
import type { VaultPorts } from "./ports.js";
import { registerPasskey } from "./new-passkey.js";
import { operationsOf } from "./shown-item.js";
import { getVault } from "./vault-operations.js";
import type { Vault } from "./vault.js";
import { findOperation } from "./wire-names.js";

interface OperateRequest {
  readonly vault: Vault;
  readonly item: VaultItem;
  readonly body: ItemOperation;
  readonly gone: AbortSignal;
  readonly request: RequestId;
}

/** Does what the item offers this very moment, and nothing else. */
export const makeOperate =
  (ports: VaultPorts): ItemOperations["operate"] =>
  async (ref, key, { body, request, gone = new AbortController().signal }) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const item = await ports.store.findItem(vault.value.id, key);
    if (!item) return refusal("vault_item_not_found");
    const type = findOperation(body.type);
    const offered = operationsOf(ports, item.spec, item.values).map((one) => one.type);
    const operate = type && offered.includes(type) ? operations[type] : undefined;
    if (!operate) return refusal("operation_unavailable");
    const faults = keyFaults(body, operate.keys);
    if (faults.length > 0) return refusal("bad_request", { details: faults });
    return await operate.run(ports, { vault: vault.value, item, body, gone, request });
  };

function keyFaults(body: object, known: readonly string[]): FieldFaults {
  const faults: FieldFaults = [];
  for (const key of Object.keys(body))
    if (key !== "type" && !known.includes(key)) fieldFault(faults, key, "is not a known field");
  return faults;
}

interface Operate {
  readonly keys: readonly string[];
  readonly run: (ports: VaultPorts, asked: OperateRequest) => Promise<Done<Operated> | Refusal>;
}

const operations: Readonly<Partial<Record<OperationType, Operate>>> = {
  collect: {
    keys: [],
    async run(ports, { vault, item }) {
      const shown = await showLinked(ports, vault, { item, event: "credential.collect_started" });
      return shown.kind === "refused" ? shown : done({ kind: "item", item: shown.value });
    },
  },
  arm_passkey: { keys: ["browser_id", "field"], run: armPasskey },
  disarm_passkey: { keys: ["browser_id", "field"], run: disarmPasskey },
  register_passkey: { keys: ["browser_id", "field"], run: registerPasskey },
  fill: { keys: ["browser_id", "fields", "page_url", "timeout_ms"], run: fill },
};

async function fill(ports: VaultPorts, asked: OperateRequest): Promise<Done<Operated> | Refusal> {
  const { vault, item, body } = asked;
  const faults = fillFaults(body);
  const { browser_id: id, fields } = body;
  if (faults.length > 0 || id === undefined || fields === undefined)
    return refusal("bad_request", { details: faults });
  const missing = fields.find(({ field }) => !isFillable(item, field));
  if (missing)
    return refusal("field_unavailable", { message: `The item has no value to fill for ${missing.field}` });
  const session = await ports.findSession(id);
  if (!session) return refusal("browser_not_found");
  if (!session.vaults.includes(vault.id)) return refusal("vault_not_attached");
  const order: FillOrder = {
    project: ports.project,
    vault: vault.id,
    item: item.id,
    key: item.key,
    version: item.version,
    browser: session.browser,
    lease: session.lease,
    until: await orderUntil(ports),
    bindings: fields.map(({ field, selector }) => ({ field, selector })),
    ...(body.page_url !== undefined && { pageUrl: body.page_url }),
    timeoutMs: body.timeout_ms ?? usualTimeoutMs,
    allowedOrigins: item.spec.allowedOrigins,
    ...(session.isProtected && { protectFilled: true }),
  };
  return await fillNoted(ports, asked, order);
}
const usualTimeoutMs = 10_000;

/** That it was begun is on record before anything is written. */
async function fillNoted(
  ports: VaultPorts,
  { vault, item, gone }: OperateRequest,
  order: FillOrder,
): Promise<Done<Operated> | Refusal> {
  const about = { browserId: order.browser };
  const data = { fields: order.bindings.map(({ field }) => field) };
  await ports.store.noteEvent(vault.id, item, { name: "credential.fill_started", ...about, data });
  const got = await ports.fill.fill(order, gone);
  if (got.kind === "refused") return got;
  const { status } = got.value;
  const filled = { name: "credential.filled", ...about, data: { ...data, status } } as const;
  // Values are in the page by now: what has become of them is told, also where Redis keeps no event of it.
  await ports.store.noteEvent(vault.id, item, filled).catch(() => {});
  return done({ kind: "fill", outcome: got.value });
}

function fillFaults({ browser_id: id, fields, page_url: url }: ItemOperation): FieldFaults {
  const faults: FieldFaults = [];
  if (id === undefined) fieldFault(faults, "browser_id", "is required");
  if (fields === undefined) fieldFault(faults, "fields", "is required");
  if (fields?.some(({ format }) => format !== undefined))
    fieldFault(faults, "fields.format", "is for the expiration of cards");
  if (url !== undefined && !URL.canParse(url)) fieldFault(faults, "page_url", "is not a URL");
  return faults;
}

/** A passkey is never typed. */
const isFillable = ({ spec, values }: VaultItem, name: string): boolean =>
  values.has(name) && spec.fields.some((field) => field.name === name && field.type !== "passkey");
