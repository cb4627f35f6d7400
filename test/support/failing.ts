import { RemudaError } from "../../src/base/errors.js";

/**
 * Names of the store's calls that fail, as they do while Redis cannot be reached. `name!` fails after it was
 * carried out.
 */
export type Broken = Set<string>;

/** A port of which a test makes single calls fail. */
export const failing = <Port extends object>(port: Port, broken: Broken): Port =>
  new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return async (...given: unknown[]): Promise<unknown> => {
        if (broken.has(String(name)))
          throw new RemudaError("store_unavailable", { message: "Redis cannot be reached" });
        const answer = (await value.apply(target, given)) as unknown;
        if (broken.has(`${String(name)}!`))
          throw new RemudaError("store_unavailable", { message: "Redis has not answered" });
        return answer;
      };
    },
  });
