import { isRecord } from "../../base/is-record.js";

/** What Chromium has said, which may have another form in another version. */
export type ProtocolRecord = Readonly<Record<string, unknown>>;

export const recordIn = (record: ProtocolRecord, key: string): ProtocolRecord => {
  const value = record[key];
  return isRecord(value) ? value : {};
};

const listIn = (record: ProtocolRecord, key: string): readonly unknown[] => {
  const value = record[key];
  return Array.isArray(value) ? value : [];
};

export const recordsIn = (record: ProtocolRecord, key: string): readonly ProtocolRecord[] =>
  listIn(record, key).filter(isRecord);

export const textIn = (record: ProtocolRecord, key: string): string | undefined => {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
};

export const numberIn = (record: ProtocolRecord, key: string): number | undefined => {
  const value = record[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};

export const flagIn = (record: ProtocolRecord, key: string): boolean | undefined => {
  const value = record[key];
  return typeof value === "boolean" ? value : undefined;
};

/** The fields that have a value. */
export const present = (fields: ProtocolRecord): ProtocolRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
