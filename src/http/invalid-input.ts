import type { Detail } from "../base/errors.js";

/** What a caller sent is not what the operation takes: answered 400 `bad_request` with every fault. */
export class InvalidInput extends Error {
  constructor(readonly details: readonly Detail[]) {
    super(details.map((detail) => detail.message).join("; "));
    this.name = "InvalidInput";
  }

  static of(where: string, what: string): InvalidInput {
    return new InvalidInput([{ code: "invalid_input", message: `${where}: ${what}` }]);
  }
}
