import { Type } from "typebox";

/** RFC 1123 names with a prefix, as Kubernetes has them; a value may be empty. */
const keyPattern = "^[a-zA-Z0-9]([a-zA-Z0-9._/-]{0,125}[a-zA-Z0-9])?$";
const valuePattern = "^[a-zA-Z0-9._-]{0,63}$";
const most = 20;

/** Which nodes a pool's browsers may be launched on. */
export const NodeSelector = Type.Record(Type.String(), Type.String({ pattern: valuePattern }), {
  maxProperties: most,
  propertyNames: { pattern: keyPattern },
  description: "Labels that a node has to have, each with this value; {} lets any node have its browsers",
});

const [isKey, isValue] = [new RegExp(keyPattern), new RegExp(valuePattern)];

/** Whether a text is `key=value`. */
export function isNodeLabel(text: string): boolean {
  const [key = "", ...values] = text.split("=");
  return isKey.test(key) && values.length === 1 && isValue.test(values[0] ?? "");
}
