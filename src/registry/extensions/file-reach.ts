import { isRecord } from "../../base/is-record.js";
import type { Manifest } from "./manifest.js";
import { namesFiles } from "./narrow-manifest.js";

/**
 * Permissions by which an extension may come to files of the host, or to programs that do. Its access to
 * files is switched off before its first run, so this is for where nothing else stands between a browser and
 * the host.
 */
const reaching: Readonly<Record<string, string>> = {
  debugger: "it drives other pages past the gate",
  downloads: "it writes files, and downloads those it may read",
  "downloads.open": "it opens what was downloaded, by programs of the host",
  "downloads.shelf": "see downloads",
  "downloads.ui": "see downloads",
  fileBrowserHandler: "it is handed files",
  fileSystem: "it asks for files to read and to write",
  fileSystemProvider: "it hands out files",
  mediaGalleries: "it reads directories of media",
  nativeMessaging: "it starts programs of the host",
  pageCapture: "it saves pages whole, those of files too",
};

const listed: readonly string[] = ["permissions", "optional_permissions"];

/**
 * Why the extension must not run beside files of the host that nothing hides, each a permission and its
 * reason; none where it may.
 */
export function findFileReach(manifest: Manifest): readonly string[] {
  const asked = listed
    .flatMap((name) => manifest[name])
    .flatMap((one: unknown) => (isRecord(one) ? Object.keys(one) : [one]));
  const names = [...new Set(asked)].filter(
    (name): name is string => typeof name === "string" && Object.hasOwn(reaching, name),
  );
  const reasons = names.map((name) => `${name}: ${reaching[name] ?? ""}`);
  return [
    ...reasons,
    ...(namesFiles(manifest) ? ["file: it asks for files themselves"] : []),
    ...("file_handlers" in manifest ? ["file_handlers: it is handed files"] : []),
  ];
}
