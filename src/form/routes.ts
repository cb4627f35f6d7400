import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Millis } from "../base/clock.js";
import { Attempts } from "../base/net/attempts.js";
import { subscriberOf } from "../base/net/client-address.js";
import { limitedAnswer, openedAnswer, submittedAnswer, unavailableAnswer } from "./answers.js";
import { type FormApp, type FormDeps, type FormOptions, sendAnswer } from "./app.js";
import type { FormAudit } from "./record-answers.js";

/** Longer than any token there is, so that a long one is unknown like any other that is wrong. */
const Token = Type.String({ maxLength: 4096 });

const OpenBody = Type.Object({ token: Token }, { additionalProperties: false });

/** As many fields as an item may have. */
const mostFields = 32;

const SubmitBody = Type.Object(
  {
    token: Token,
    version: Type.Integer({ minimum: 1 }),
    values: Type.Record(Type.String({ maxLength: 64 }), Type.String(), { maxProperties: mostFields }),
  },
  { additionalProperties: false },
);

/** Submissions of one link in a minute. */
const submissionsPerMinute = 10;

/** What stands for a token wherever the token itself may not stand. */
const linkDigest = (token: string): string => createHash("sha256").update(token).digest("base64url");

interface FormParts extends Pick<FormDeps, "forms" | "clock"> {
  readonly addressOf: (raw: IncomingMessage) => string;
  readonly trail: Pick<FormAudit, "note" | "begin">;
}

/** What the page asks: to open the form of its link, and to submit it. */
export function addFormRoutes(
  app: FormApp,
  { attemptsPerMinute }: FormOptions,
  { forms, clock, addressOf, trail }: FormParts,
): void {
  const ofAddress = new Attempts(attemptsPerMinute, clock);
  const ofToken = new Attempts(submissionsPerMinute, clock);
  const findWait = ({ raw }: FastifyRequest): Millis | undefined =>
    ofAddress.take(subscriberOf(addressOf(raw)));

  app.post("/open", { schema: { body: OpenBody } }, async (request, reply) => {
    const waitMs = findWait(request);
    if (waitMs !== undefined) return sendAnswer(reply, limitedAnswer(waitMs));
    const opened = await forms.open(request.body.token);
    trail.note(request, opened);
    return sendAnswer(reply, openedAnswer(opened, clock.now()));
  });
  app.post("/submit", { schema: { body: SubmitBody } }, async (request, reply) => {
    const { token, ...submission } = request.body;
    const waitMs = findWait(request) ?? ofToken.take(linkDigest(token));
    if (waitMs !== undefined) return sendAnswer(reply, limitedAnswer(waitMs));
    // What may change an item is on record before; anybody may send what changes none.
    const opened = await forms.open(token);
    trail.note(request, opened);
    const told = opened.kind === "form" ? await trail.begin(request) : undefined;
    const submitted = await forms.submit(token, submission).catch(async (error: unknown) => {
      await told?.(unavailableAnswer.status);
      throw error;
    });
    const answer = submittedAnswer(submitted);
    await told?.(answer.status);
    return sendAnswer(reply, answer);
  });
}
