import type { Clock } from "../../base/clock.js";
import type { Staging } from "../../archive/archives.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject, judgeUpload } from "../admission/caller.js";
import type { UploadLimits } from "../deps.js";
import { sendRefusal } from "../errors.js";
import { type MultipartLimits, readParts } from "../uploads/multipart.js";
import { receiveExtensions } from "../uploads/receive-extensions.js";
import { parseSessionRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import { SessionExtensions, SessionRef } from "../schemas/requests.js";

interface Deps {
  readonly inProject: InProject;
  readonly staging: Staging;
  readonly clock: Clock;
  readonly uploads: UploadLimits;
}

/**
 * Twice what the most extensions take: a body with too many of them is told so, and not only that it has too
 * many parts.
 */
const maxParts = 80;
/** A list of the most names that there may be fits, written as JSON. */
const maxFieldBytes = 64 * 1024;

/**
 * docs/extensions-and-profiles.md#into-a-running-browser; the body is read once it is
 * known that there is such a session.
 */
export function addSessionExtensions(app: App, { inProject, staging, clock, uploads }: Deps): void {
  const limits: MultipartLimits = { maxParts, maxFieldBytes, ...uploads };
  app.post(
    "/browsers/:id_or_name/extensions",
    {
      config: { takesMultipart: true, audit: "started" },
      schema: {
        ...operations.addBrowserExtensions,
        consumes: ["multipart/form-data"],
        params: SessionRef,
        body: SessionExtensions,
      },
      // There is no body to hold against the schema, which is there to be read by people.
      validatorCompiler: () => (value: unknown) => ({ value }),
    },
    async (request, reply) => {
      const caller = callerOf(request, reply);
      const target = await inProject(request).sessions.findUploadTarget(
        parseSessionRef(request.params),
        caller,
      );
      if (target.kind === "refused") return sendRefusal(reply, target);
      const parts = readParts({ request: request.raw, response: reply.raw }, limits, clock);
      const received = await receiveExtensions(parts, { staging, maxBytes: uploads.maxFileBytes });
      if (received.kind === "refused") return sendRefusal(reply, received);
      const { items, discard } = received.value;
      const added = await judgeUpload(request)
        .then(() => inProject(request).sessions.addExtensions(target.value, items, caller))
        .finally(discard);
      return added.kind === "refused" ? sendRefusal(reply, added) : reply.code(201).send();
    },
  );
}
