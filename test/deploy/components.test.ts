import type { V1Deployment } from "@kubernetes/client-node";
import { readFileSync } from "node:fs";
import { realpath, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { openConfig } from "../../src/config/config.js";
import { type Manifest, manifestOf, render, renderers, sorted } from "../support/kubernetes/kustomize.js";
import { faultsOf } from "../support/kubernetes/schema.js";
import { newDirectory } from "../support/killed-runs.js";

const root = join(import.meta.dirname, "../..");
const overlays = ["trial", "restricted", "apparmor", "netns"];
const sizes = [16, 32];

const gibibytes = (text: string | undefined): number => Number(/^(\d+)Gi$/.exec(text ?? "")?.[1]);

/** An overlay of an operator's own, over a shipped one. */
async function overlayWith(overlay: string, component: string): Promise<string> {
  const directory = await realpath(newDirectory("overlay"));
  const to = (path: string): string => relative(directory, join(root, "k8s", path));
  await writeFile(
    join(directory, "kustomization.yaml"),
    [
      "apiVersion: kustomize.config.k8s.io/v1beta1",
      "kind: Kustomization",
      `resources: [${to(`overlays/${overlay}`)}]`,
      `components: [${to(`components/${component}`)}]`,
    ].join("\n"),
  );
  return directory;
}

/** What all renderers make of it, which is the same and known to Kubernetes. */
async function renderedWith(overlay: string, component: string): Promise<readonly Manifest[]> {
  const directory = await overlayWith(overlay, component);
  const rendered = await Promise.all(renderers.map(([, renderWith]) => renderWith(directory)));
  const [manifests = []] = rendered;
  for (const each of rendered) expect(sorted(each)).toEqual(sorted(manifests));
  expect(manifests.flatMap(faultsOf)).toEqual([]);
  return manifests;
}

test.each(overlays)(
  "overlay %s with TLS to Redis: controls and nodes have the files that the page names",
  async (overlay) => {
    const manifests = await renderedWith(overlay, "redis-tls");
    const page = readFileSync(join(root, "docs/deployment.md"), "utf8");
    const named = [...page.matchAll(/"tls_\w+_file": "(\/[\w./-]+)\/[\w.]+"/g)].map(
      ([, folder = ""]) => folder,
    );
    expect(named).toHaveLength(3);
    for (const deployment of ["remuda-control", "remuda-node"]) {
      const { spec } = manifestOf<V1Deployment>(manifests, "Deployment", deployment).spec?.template ?? {};
      const secrets = (spec?.volumes ?? []).flatMap(({ name, secret }) => (secret ? [name] : []));
      const mounts = (spec?.containers[0]?.volumeMounts ?? []).filter(({ name }) => secrets.includes(name));
      expect(mounts).toEqual([{ name: "redis-tls", mountPath: named[0], readOnly: true }]);
    }
    expect(new Set(named).size).toBe(1);
  },
);

test.each(overlays)(
  "overlay %s for autoscalers: no apply of it says how many nodes there are, and all else is as it was",
  async (overlay) => {
    const manifests = await renderedWith(overlay, "autoscaled");
    const before = await render(join(root, "k8s/overlays", overlay));
    const { spec } = manifestOf<V1Deployment>(before, "Deployment", "remuda-node");
    expect(spec?.replicas).toBeGreaterThan(0);
    delete spec?.replicas;
    expect(sorted(manifests)).toEqual(sorted(before));
  },
);

test.each(overlays.flatMap((overlay) => sizes.map((size) => [overlay, size] as const)))(
  "overlay %s with node pods of %i GiB: what browsers may have is the limit less what they store",
  async (overlay, size) => {
    const manifests = await renderedWith(overlay, `nodes-${size}gi`);
    const { spec } = manifestOf<V1Deployment>(manifests, "Deployment", "remuda-node").spec?.template ?? {};
    const [container] = spec?.containers ?? [];
    const memory = gibibytes(container?.resources?.limits?.["memory"]);
    expect(memory).toBe(size);
    expect(container?.resources?.requests?.["memory"]).toBe(`${size}Gi`);
    const shared = gibibytes(spec?.volumes?.find(({ name }) => name === "shm")?.emptyDir?.sizeLimit);
    expect(shared).toBe(size / 4);
    const [name, ...more] = (container?.env ?? []).filter(({ name: each }) => each.includes("MEMORY"));
    expect(more).toEqual([]);
    const opened = openConfig({
      packageRoot: root,
      env: { REMUDA_CONFIG: "config/default.json", [name?.name ?? ""]: name?.value },
    });
    expect(opened).toMatchObject({ config: { node: { memoryBytes: (memory - shared) * 2 ** 30 } } });
  },
);
