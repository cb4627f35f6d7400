import { isRecord } from "../../base/is-record.js";

/** What Chromium has said, which may have another form in another version. */
export type Said = Readonly<Record<string, unknown>>;

export const recordIn = (said: Said, key: string): Said => {
  const value = said[key];
  return isRecord(value) ? value : {};
};

const listIn = (said: Said, key: string): readonly unknown[] => {
  const value = said[key];
  return Array.isArray(value) ? value : [];
};

export const recordsIn = (said: Said, key: string): readonly Said[] => listIn(said, key).filter(isRecord);

export const textIn = (said: Said, key: string): string | undefined => {
  const value = said[key];
  return typeof value === "string" ? value : undefined;
};

export const numberIn = (said: Said, key: string): number | undefined => {
  const value = said[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};

export const flagIn = (said: Said, key: string): boolean | undefined => {
  const value = said[key];
  return typeof value === "boolean" ? value : undefined;
};

/** The fields that have a value. */
export const present = (fields: Said): Said =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
