import type { Gate } from "../gates/gate.js";

/**
 * The mapper puts downloads back to Chromium's default when it starts and whenever a client names no folder:
 * they stay in the session's directory.
 */
export const keepDownloads =
  (gate: Gate): Gate =>
  (command, context) => {
    const { method, params } = command;
    if (method !== "Browser.setDownloadBehavior" || params["behavior"] !== "default")
      return gate(command, context);
    const kept = { ...params, behavior: "allow", downloadPath: context.directories.downloads };
    return gate({ ...command, params: kept }, context);
  };
