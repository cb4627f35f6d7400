import type { V1Deployment } from "@kubernetes/client-node";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { manifestOf, render } from "../support/kubernetes/kustomize.js";

const root = join(import.meta.dirname, "../..");
const [, dataDir] = /REMUDA_DATA_DIR=(\S+)/.exec(readFileSync(join(root, "Dockerfile"), "utf8")) ?? [];

test.each(["trial", "restricted", "apparmor", "netns"])(
  "what a node of %s journals outlives a restart of its container, and is no other pod's",
  async (overlay) => {
    const rendered = await render(join(root, "k8s/overlays", overlay));
    const { spec } = manifestOf<V1Deployment>(rendered, "Deployment", "remuda-node").spec?.template ?? {};
    const container = spec?.containers[0];
    // What the image says stands: no variable of the pod moves it.
    expect(container?.env?.map(({ name }) => name)).not.toContain("REMUDA_DATA_DIR");
    const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath === dataDir);
    expect(mount).toEqual({ name: expect.any(String), mountPath: dataDir });
    const volume = spec?.volumes?.find(({ name }) => name === mount?.name);
    // On the disk of the machine, so that it is not memory of the container.
    expect(volume).toEqual({ name: mount?.name, emptyDir: { sizeLimit: expect.stringMatching(/^\d+Gi$/) } });
  },
);
