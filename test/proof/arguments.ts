import { type ParseArgsConfig, parseArgs } from "node:util";
import type { Engine } from "../../src/browser/chromium.js";

/** A kind of browser that a proof is run for. */
export interface Kind {
  readonly engine: Engine;
  readonly headless: boolean;
}

export const kinds: Readonly<Record<string, Kind>> = {
  headless: { engine: "chromium", headless: true },
  headful: { engine: "chromium", headless: false },
  "headless-shell": { engine: "headless-shell", headless: true },
};

/** `--name text`. */
export const text = { type: "string" } as const;
/** `--name`. */
export const flag = { type: "boolean" } as const;

/** What a proof was called with. Throws with the usage where that is not understood. */
export class ProofArguments {
  constructor(private readonly usage: string) {}

  parse<const Options extends NonNullable<ParseArgsConfig["options"]>>(
    args: readonly string[],
    options: Options,
  ) {
    try {
      return parseArgs({ args: [...args], options }).values;
    } catch (error) {
      throw this.#fault(error instanceof Error ? error.message : String(error), error);
    }
  }

  /** The values that are named, all where none is. */
  pick<Value>(
    option: string,
    asked: string | undefined,
    all: Readonly<Record<string, Value>>,
  ): readonly Value[] {
    return (asked?.split(",") ?? Object.keys(all)).map((name) => {
      const value = all[name];
      if (value === undefined)
        throw this.#fault(`${option} ${name}: there are ${Object.keys(all).join(", ")}`);
      return value;
    });
  }

  #fault(why: string, cause?: unknown): Error {
    return new Error(`${why}\n\n${this.usage}`, { cause });
  }
}
