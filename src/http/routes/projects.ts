import { refusal } from "../../base/errors.js";
import type { App } from "../app.js";
import { sendRefusal } from "../errors.js";

/**
 * There are no projects yet, whatever is asked of them (docs/api.md#what-is-not-built); hence not in the
 * OpenAPI document.
 */
export function addProjects(app: App): void {
  for (const url of ["/org/projects", "/org/projects/*", "/projects", "/projects/*"]) {
    app.route({
      method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
      url,
      schema: { hide: true },
      // Before the body is looked at, so that no body changes the answer.
      onRequest: async (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
      handler: (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
    });
  }
}
