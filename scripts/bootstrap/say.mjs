/** Something the user has to settle: printed as it is, without a stack. */
export class Refusal extends Error {}

/** Progress goes to the standard error, so that the standard output is the daemon's or the tests'. */
export const say = (text) => process.stderr.write(`remuda: ${text}\n`);
