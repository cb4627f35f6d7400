import { type ItemProvider, itemProviders, type OperationType, operationTypes } from "./item.js";

/** Which names are answered: the neutral ones, or those that public clients know. Both are taken. */
export type WireNames = "neutral" | "public";

const publicProviders: Readonly<Record<ItemProvider, string>> = {
  native: "kernel",
  issuer_a: "agentcard",
  issuer_b: "link",
  password_manager: "1password",
  managed_auth: "managed_auth",
};
const publicOperation = (type: OperationType): string => type.replace(/^pm_/, "1pw_");

/** Every name that a request may have. */
export const providerNames: readonly string[] = [
  ...new Set([...itemProviders, ...Object.values(publicProviders)]),
];
export const operationNames: readonly string[] = [
  ...new Set([...operationTypes, ...operationTypes.map(publicOperation)]),
];

export const findProvider = (name: string): ItemProvider | undefined =>
  itemProviders.find((provider) => provider === name || publicProviders[provider] === name);
export const findOperation = (name: string): OperationType | undefined =>
  operationTypes.find((type) => type === name || publicOperation(type) === name);

export const providerName = (provider: ItemProvider, names: WireNames): string =>
  names === "public" ? publicProviders[provider] : provider;
export const operationName = (type: OperationType, names: WireNames): string =>
  names === "public" ? publicOperation(type) : type;
