import type { App } from "../app.js";
import { operations } from "../schemas/operations.js";
import type { AuthContextReply } from "../schemas/replies.js";

/**
 * Who the one key there is stands for. Its `credential_id` is a text, since null means a session that is not
 * an API key; it names no resource until keys are ones.
 */
const rootContext: AuthContextReply = {
  authentication: { method: "api_key", source: "api_key", credential_id: "root" },
  principal: { type: "api_key", id: "root" },
  organization: { id: "default" },
  authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
};

export function addAuth(app: App): void {
  app.get("/auth/context", { schema: operations.getAuthContext }, async () => rootContext);
}
