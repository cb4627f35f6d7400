import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, parseAllDocuments } from "yaml";

/** A manifest; what it has beside these is a matter of its kind. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly [field: string]: unknown;
}
type Mutable = Record<string, unknown>;

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly namespace?: string;
  readonly patches?: readonly { readonly target: { kind: string; name: string }; readonly path: string }[];
}
interface Operation {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  readonly value?: unknown;
}

/** These belong to no namespace. */
const ofTheCluster = new Set(["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"]);
/** All that the renderer of the tests knows; a field beyond them would be passed over in silence. */
const knownFields = new Set(["apiVersion", "kind", "resources", "components", "namespace", "patches"]);

const documentsOf = async (file: string): Promise<Manifest[]> =>
  parseAllDocuments(await readFile(file, "utf8")).map((document) => document.toJS() as Manifest);

/** RFC 6902 as kustomize applies it: a member that is replaced or removed has to be there. */
function patch(root: Mutable, { op, path, value }: Operation): void {
  const steps = path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = steps.pop() ?? "";
  let place: Mutable | unknown[] = root;
  for (const step of steps) {
    const next: unknown = (place as Mutable)[step];
    if (typeof next !== "object" || next === null) throw new Error(`${path}: there is no ${step}`);
    place = next as Mutable;
  }
  if (Array.isArray(place) && op === "add") {
    place.splice(last === "-" ? place.length : Number(last), 0, value);
    return;
  }
  if (op !== "add" && !(last in place)) throw new Error(`${path}: there is no ${last}`);
  if (op === "remove") delete (place as Mutable)[last];
  else (place as Mutable)[last] = value;
}

function moveTo(namespace: string, manifest: Manifest): void {
  const metadata = manifest.metadata as { name: string; namespace?: string };
  if (manifest.kind === "Namespace") metadata.name = namespace;
  else if (!ofTheCluster.has(manifest.kind)) metadata.namespace = namespace;
  for (const subject of (manifest["subjects"] as Mutable[] | undefined) ?? [])
    subject["namespace"] = namespace;
}

/** Renders the part of kustomize that the overlays use, for machines without it. */
export async function render(directory: string): Promise<Manifest[]> {
  return await renderOver(directory, []);
}

/** A component is applied to what whoever names it has, before their own patches. */
async function renderOver(directory: string, given: readonly Manifest[]): Promise<Manifest[]> {
  const text = await readFile(join(directory, "kustomization.yaml"), "utf8");
  const kustomization = parse(text) as Kustomization;
  const unknown = Object.keys(kustomization).filter((field) => !knownFields.has(field));
  if (unknown.length > 0) throw new Error(`${directory}: the tests' renderer lacks ${unknown.join(", ")}`);
  const { resources = [], components = [], namespace, patches = [] } = kustomization;
  const read = (path: string): Promise<Manifest[]> =>
    statSync(path).isDirectory() ? render(path) : documentsOf(path);
  let manifests = (await Promise.all(resources.map((name) => read(join(directory, name))))).flat();
  manifests = [...given, ...manifests];
  for (const name of components) manifests = await renderOver(join(directory, name), manifests);
  for (const { target, path } of patches) {
    const found = manifests.filter(
      ({ kind, metadata }) => kind === target.kind && metadata.name === target.name,
    );
    if (found.length === 0) throw new Error(`${path}: no ${target.kind} is called ${target.name}`);
    const operations = parse(await readFile(join(directory, path), "utf8")) as Operation[];
    found.forEach((manifest) => operations.forEach((operation) => patch(manifest, operation)));
  }
  if (namespace !== undefined) for (const manifest of manifests) moveTo(namespace, manifest);
  return manifests;
}

const kubectl = "/usr/bin/kubectl";
/** Builds by kustomize itself, as kubectl has it. */
async function renderByKubectl(directory: string): Promise<Manifest[]> {
  const { stdout } = await promisify(execFile)(kubectl, ["kustomize", directory]);
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
}

/** Whatever renders here: the tests' own way, and kustomize itself where a kubectl is installed. */
export const renderers: readonly (readonly [string, (directory: string) => Promise<Manifest[]>])[] = [
  ["the tests' renderer", render],
  ...(existsSync(kubectl) ? [["kubectl kustomize", renderByKubectl] as const] : []),
];

const keyOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;
export const sorted = (manifests: readonly Manifest[]): Manifest[] =>
  manifests.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));

/** The manifest of that kind and name, as whatever its reader knows it to be. */
export function manifestOf<Kind>(manifests: readonly Manifest[], kind: string, name: string): Kind {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (!found) throw new Error(`no ${kind} is called ${name}`);
  return found as unknown as Kind;
}
