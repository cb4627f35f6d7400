import type { ClientAttempt } from "./attempt.js";

/** An attempt of a client over CDP. */
export const command = (
  name: string,
  run: ClientAttempt["run"],
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({ name, vector: "CDP", succeedsPlain: true, ...other, run });
