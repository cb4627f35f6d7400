import type { Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import { type CredentialSpec, type CredentialStatus, isOnForm, statusOf } from "./credentials/credential.js";
import type { DataKey } from "./encryption/data-key.js";
import { urlOfLink } from "./collection-links.js";
import type { AvailableOperation, CollectionLink, VaultItem } from "./item.js";
import type { VaultPorts } from "./ports.js";
import { openValue } from "./credentials/sent-values.js";
import type { Vault } from "./vault.js";

/** An item as its readers see it: of sensitive values only that they are there. */
export interface ShownItem {
  readonly item: Omit<VaultItem, "values" | "link">;
  readonly status: CredentialStatus;
  readonly fields: readonly ShownField[];
  readonly operations: readonly AvailableOperation[];
  /** The form that a person is to open. */
  readonly collect?: { readonly url: string; readonly expiresAt: Millis };
}
interface ShownField {
  readonly name: string;
  readonly hasValue: boolean;
  /** Shown where the field is not sensitive. */
  readonly value?: string;
}

type Abilities = Pick<VaultPorts, "formUrl" | "fill">;

/** Whether a form can collect anything of it here. */
export const mayCollect = ({ formUrl }: Pick<VaultPorts, "formUrl">, { fields }: CredentialSpec): boolean =>
  formUrl !== undefined && fields.some(isOnForm);

/** What may be done with a credential this very moment. */
export function operationsOf(
  abilities: Abilities,
  spec: CredentialSpec,
  filled: { has(name: string): boolean },
): readonly AvailableOperation[] {
  const { isSupported } = abilities.fill;
  const isFillable = spec.fields.some(({ name, type }) => type !== "passkey" && filled.has(name));
  const mayFill = isSupported && isFillable && statusOf(spec, filled) === "ready";
  const hasPasskey = spec.fields.some(({ name, type }) => type === "passkey" && filled.has(name));
  const lacksPasskey = spec.fields.some(({ name, type }) => type === "passkey" && !filled.has(name));
  return [
    ...(mayCollect(abilities, spec) ? [collect] : []),
    ...(mayFill ? [fill] : []),
    ...(isSupported && hasPasskey ? [armPasskey] : []),
    ...(isSupported && (hasPasskey || lacksPasskey) ? [disarmPasskey] : []),
    ...(isSupported && lacksPasskey ? [registerPasskey] : []),
  ];
}
const registerPasskey: AvailableOperation = {
  type: "register_passkey",
  description: "Keep the next passkey that a page of a browser of this vault makes, within ten minutes",
};
const armPasskey: AvailableOperation = {
  type: "arm_passkey",
  description: "Have pages of a browser of this vault sign in with the passkey, for ten minutes at most",
};
const disarmPasskey: AvailableOperation = {
  type: "disarm_passkey",
  description:
    "Take the passkey from the browser that has it, or have a browser no longer wait for a new one",
};
const collect: AvailableOperation = {
  type: "collect",
  description: "Get a link to a form on which a person enters or changes the values",
};
const fill: AvailableOperation = {
  type: "fill",
  description: "Write values into fields of a page that is open in a browser of this vault",
};

interface Showing {
  readonly vault: Vault;
  readonly dataKey: DataKey;
}

/** `link`: one that holds. Throws `secret_unreadable` where a value that is shown is damaged. */
export function showItem(
  ports: Abilities & Pick<VaultPorts, "project">,
  { vault, dataKey }: Showing,
  { item, link }: { readonly item: VaultItem; readonly link: CollectionLink | undefined },
): ShownItem {
  const { values, link: _kept, ...rest } = item;
  const place = { project: ports.project, vault: vault.id, item, dataKey };
  const { formUrl } = ports;
  const isShown = link !== undefined && formUrl !== undefined;
  return {
    item: rest,
    status: statusOf(item.spec, values),
    fields: item.spec.fields.map(({ name, sensitive }) => {
      const stored = values.get(name);
      if (!stored) return { name, hasValue: false };
      if (sensitive) return { name, hasValue: true };
      const value = openValue({ project: ports.project, vault, dataKey }, item, { name, stored });
      if (!value)
        throw new RemudaError("secret_unreadable", { message: `A value of item ${item.id} is damaged` });
      return { name, hasValue: true, value: value.reveal() };
    }),
    operations: operationsOf(ports, item.spec, values),
    ...(isShown && { collect: { url: urlOfLink(formUrl, place, link), expiresAt: link.expiresAt } }),
  };
}
