import * as client from "@kubernetes/client-node";
import type { Manifest } from "./kustomize.js";

interface Attribute {
  readonly baseName: string;
  readonly type: string;
}
interface Model {
  getAttributeTypeMap(): readonly Attribute[];
}
const models = client as unknown as Readonly<Record<string, Model | undefined>>;

const scalars: Readonly<Record<string, readonly string[]>> = {
  string: ["string"],
  number: ["number"],
  boolean: ["boolean"],
  any: ["string", "number", "boolean", "object"],
  object: ["object"],
  IntOrString: ["string", "number"],
  Date: ["string"],
};

/** `apps/v1` and Deployment are `V1Deployment`; `autoscaling/v2` has `V2HorizontalPodAutoscaler`. */
function modelOf({ apiVersion, kind }: Manifest): string {
  const version = apiVersion.split("/").at(-1) ?? "";
  return `${version.slice(0, 1).toUpperCase()}${version.slice(1)}${kind}`;
}

function faultsAt(path: string, value: unknown, type: string): string[] {
  const list = /^Array<(.*)>$/.exec(type)?.[1];
  if (list !== undefined)
    return Array.isArray(value)
      ? value.flatMap((item, index) => faultsAt(`${path}[${index}]`, item, list))
      : [`${path} is no list`];
  const entries = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (entries !== undefined)
    return Object.entries((value ?? {}) as object).flatMap(([key, item]) =>
      faultsAt(`${path}.${key}`, item, entries),
    );
  const kinds = scalars[type];
  if (kinds) return kinds.includes(typeof value) ? [] : [`${path} is no ${type}`];
  const model = models[type];
  if (!model) return [`${path}: the client knows no ${type}`];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [`${path} is no ${type}`];
  return Object.entries(value).flatMap(([name, item]) => {
    const attribute = model.getAttributeTypeMap().find(({ baseName }) => baseName === name);
    return attribute ? faultsAt(`${path}.${name}`, item, attribute.type) : [`${path}.${name} is unknown`];
  });
}

/**
 * What Kubernetes's own types, as its client is generated from its OpenAPI document, do not know of a
 * manifest: fields that there are not, and values of another type.
 */
export const faultsOf = (manifest: Manifest): string[] =>
  faultsAt(`${manifest.kind} ${manifest.metadata.name}`, manifest, modelOf(manifest));
