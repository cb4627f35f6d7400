import { destinationBody } from "../http/recorded-audit.js";

/** Bodies that the schemas take. */
export const acceptedBodies: Readonly<Record<string, object>> = {
  createBrowserPool: { size: 1 },
  releaseBrowser: { session_id: "mine" },
  createProxy: { type: "custom", config: { host: "a.example", port: 1 } },
  updateProxy: { name: "x" },
  updateProfile: { name: "x" },
  createApiKey: { name: "x" },
  renameApiKey: { name: "x" },
  reportCaptchaSolveResult: { captcha_type: "other", status: "success", duration_ms: 1 },
  curlBrowser: { url: "https://a.example/" },
  createTelemetryDestination: { name: "x", endpoint: "https://a.example" },
  createExportDestination: destinationBody(),
  createVault: { name: "x" },
  putVaultItem: { type: "credential", spec: { provider: "native", fields: [{ name: "a", type: "text" }] } },
  updateVaultItem: { type: "credential", version: 1, spec: { description: "x" } },
  operateVaultItem: { type: "collect" },
};
