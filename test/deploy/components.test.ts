import type { V1Deployment } from "@kubernetes/client-node";
import { realpath, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { openConfig } from "../../src/config/config.js";
import { manifestOf, renderers, sorted } from "../support/kubernetes/kustomize.js";
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

test.each(overlays.flatMap((overlay) => sizes.map((size) => [overlay, size] as const)))(
  "overlay %s with node pods of %i GiB: what browsers may have is the limit less what they store",
  async (overlay, size) => {
    const directory = await overlayWith(overlay, `nodes-${size}gi`);
    const rendered = await Promise.all(renderers.map(([, renderWith]) => renderWith(directory)));
    const [manifests = []] = rendered;
    for (const each of rendered) expect(sorted(each)).toEqual(sorted(manifests));
    expect(manifests.flatMap(faultsOf)).toEqual([]);
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
