import { randomBytes } from "node:crypto";
import { workspaceOf } from "../support/browser-processes.js";
import { zipBytes } from "../support/zip-bytes.js";
import type { OpenGround } from "./ground.js";
import type { Browser, House, Kind } from "./house.js";
import { findMainProcess } from "./programs.js";

/** Browsers of the ground's own daemon. */
export function openWalled(ground: OpenGround, kind: Kind, session: object = {}): House {
  const { daemon } = ground;
  return {
    kind, ground, isPlain: false,
    async open(): Promise<Browser> {
      const made = await daemon.call("POST /browsers", { ...kind, timeout_seconds: 3600, memory: kind.headless ? "1GiB" : "8GiB", ...session });
      const id = String(made["session_id"]);
      const root = workspaceOf(daemon.scratchDirectory, id);
      const mainPid = (): Promise<number> => findMainProcess(root);
      return {
        root, mainPid, isPlain: false, cdpUrl: String(made["cdp_ws_url"]), ...isolationOf(made),
        places: async () => [{ kind: "browser", pid: await mainPid() }],
        extend: (files) => extend(ground, id, files),
        // The attempt may have ended it.
        close: () => daemon.call(`DELETE /browsers/${id}`).then(() => {}, () => {}),
      };
    },
  };
}

function isolationOf(session: Record<string, unknown>): { isolation?: string } {
  const found = session["isolation"] ?? (session["network"] as { isolation?: unknown } | undefined)?.isolation;
  return found === undefined ? {} : { isolation: typeof found === "string" ? found : JSON.stringify(found) };
}

async function extend({ daemon }: OpenGround, id: string, files: Readonly<Record<string, string | Buffer>>): Promise<boolean> {
  const form = new FormData();
  form.append("extensions[0][name]", `e${randomBytes(6).toString("hex")}`);
  const zip = zipBytes(Object.entries(files).map(([name, content]) => ({ name, content })));
  form.append("extensions[0][zip_file]", new Blob([new Uint8Array(zip)]), "extension.zip");
  // What is refused is refused for what the extension asks for.
  return await daemon.call(`POST /browsers/${id}/extensions`, form).then(() => true, (error: Error) => {
    if (/extensions: 400 /.test(error.message)) return false;
    throw error;
  });
}
