import { extensionZip } from "../archive/zip-bytes.js";
import type { DaemonProcess } from "../daemon/daemon-process.js";

/** Uploads an extension as a client would; the status, and what the body says. */
export async function uploadExtension({
  url,
  apiKey,
}: DaemonProcess): Promise<{ status: number; code?: string }> {
  const form = new FormData();
  form.set("file", new Blob([extensionZip()]), "marks.zip");
  const reply = await fetch(`${url}/extensions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body: form,
  });
  return { status: reply.status, ...((await reply.json()) as object) };
}
