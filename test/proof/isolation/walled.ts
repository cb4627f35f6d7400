import { randomBytes } from "node:crypto";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { zipBytes, type ZipPart } from "../../support/archive/zip-bytes.js";
import type { Kind } from "../arguments.js";
import type { OpenMachine } from "./machine.js";
import type { Browser, BrowserSource, KeepingBrowser, SourceBeside } from "./browser-source.js";
import { type Daemon, type Settings, startAs } from "./daemon.js";
import { findMainProcess } from "./programs.js";
import { partsOf } from "./unpack-anything.js";

/** Browsers of the machine's own daemon. */
export function openWalled(machine: OpenMachine, kind: Kind, session: object = {}): BrowserSource {
  const { daemon } = machine;
  const open = async (more: object = {}): Promise<Browser> => {
    const made = await daemon.call("POST /browsers", {
      ...kind,
      timeout_seconds: 3600,
      memory: kind.headless ? "1GiB" : "8GiB",
      ...session,
      ...more,
    });
    const id = String(made["session_id"]);
    const root = workspaceOf(daemon.scratchDirectory, id);
    const mainPid = (): Promise<number> => findMainProcess(root);
    return {
      root,
      mainPid,
      isPlain: false,
      cdpUrl: String(made["cdp_ws_url"]),
      ...isolationOf(made),
      places: async () => [{ kind: "browser", pid: await mainPid() }],
      extend: (files) => unpack(machine, id, partsOf(files)),
      unpack: (entries) => unpack(machine, id, entries),
      // The attempt may have ended it.
      close: () =>
        daemon.call(`DELETE /browsers/${id}`).then(
          () => {},
          () => {},
        ),
    };
  };
  const openKeeping = async (): Promise<KeepingBrowser> => {
    const { id } = await daemon.call("POST /profiles", { name: `p-${randomBytes(6).toString("hex")}` });
    const browser = await open({ profile: { id, save_changes: true } });
    return {
      ...browser,
      async save() {
        await browser.close();
        return await daemon.download(`/profiles/${String(id)}/download?format=tar`);
      },
    };
  };
  const besides = (other: Daemon): SourceBeside => ({
    open: () => openWalled({ ...machine, daemon: other }, kind, session).open(),
    log: () => other.log(),
    close: () => other.close(),
  });
  const { tier } = machine;
  const pod = tier.context?.pod;
  return {
    kind,
    machine,
    isPlain: false,
    open: () => open(),
    openKeeping,
    openBeside: async (settings) => besides(await startAs(tier, settings)),
    ...(pod && {
      openPod: async (settings: Settings) =>
        besides(await startAs(tier, { ...pod.settings, ...settings }, { isPod: true })),
    }),
  };
}

const isolationOf = ({ isolation }: Record<string, unknown>): Pick<Browser, "isolation"> =>
  typeof isolation === "object" && isolation !== null ? { isolation } : {};

async function unpack({ daemon }: OpenMachine, id: string, entries: readonly ZipPart[]): Promise<boolean> {
  const form = new FormData();
  form.append("extensions[0][name]", `e${randomBytes(6).toString("hex")}`);
  form.append("extensions[0][zip_file]", new Blob([new Uint8Array(zipBytes(entries))]), "extension.zip");
  // What is refused is refused for what the extension asks for, or for what its archive holds.
  return await daemon.call(`POST /browsers/${id}/extensions`, form).then(
    () => true,
    (error: Error) => {
      if (/extensions: 400 /.test(error.message)) return false;
      throw error;
    },
  );
}
