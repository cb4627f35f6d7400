import { inspect } from "node:util";

/** A text that cannot be printed: its string, JSON and inspected form is `[secret]`. */
export class Secret {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  /** The only way to the text. */
  reveal(): string {
    return this.#text;
  }
  toString(): string {
    return "[secret]";
  }
  toJSON(): string {
    return "[secret]";
  }
  [inspect.custom](): string {
    return "[secret]";
  }
}
