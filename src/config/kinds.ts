import { Type } from "typebox";

/**
 * What a setting says about itself beside its type. `--help`, the table of docs/settings.md and every fault
 * are made from it.
 */
export interface Setting {
  readonly description: string;
  /** Texts and switches have no unit. */
  readonly unit?: string;
  /** Where it is null, what `otherwise` says applies. */
  readonly default: unknown;
  readonly otherwise?: string;
  /** The environment variable that overrides the file. */
  readonly env?: string;
  /** True where the value must not be printed. */
  readonly secret?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly type: string | readonly string[];
  readonly enum?: readonly string[];
  readonly form?: string;
}

interface About {
  readonly env?: string;
  readonly pattern?: string;
  /** What the text has to look like; the fault says it. */
  readonly form?: string;
}

/** Forms that texts of several settings share. */
export const httpOrigin = {
  pattern: "^https?://[^/?#@\\s]+$",
  form: "http(s)://host[:port] without a path",
} as const;
export const httpUrl = { pattern: "^https?://[^/@\\s]+(/\\S*)?$", form: "http(s)://…" } as const;

type Range = readonly [minimum: number, maximum: number];

const day = 24 * 60 * 60;

const whole =
  (description: string, unit: string, range: Range) =>
  (value: number, about: About = {}) =>
    Type.Integer({ description, unit, minimum: range[0], maximum: range[1], default: value, ...about });
/** `otherwise` says what null means. Null is the default unless another is given. */
const wholeOr =
  (description: string, unit: string, range: Range) =>
  (otherwise: string, value: number | null = null, about: About = {}) =>
    Type.Unsafe<number | null>({
      type: ["integer", "null"],
      description,
      unit,
      minimum: range[0],
      maximum: range[1],
      default: value,
      otherwise,
      ...about,
    });

/**
 * Each kind names its unit. The key's suffix (`_seconds`, `_ms`…) has to say the same, since `compile.ts`
 * goes by it.
 */
export const seconds = (description: string, range: Range = [1, day]) => whole(description, "s", range);
export const secondsOr = (description: string, range: Range = [0, day]) => wholeOr(description, "s", range);
export const minutesOr = (description: string, range: Range = [1, 60 * day]) =>
  wholeOr(description, "min", range);
export const minutes = (description: string, range: Range = [1, day]) => whole(description, "min", range);
export const hours = (description: string, range: Range = [1, 24 * 366]) => whole(description, "h", range);
export const millis = (description: string, range: Range = [1, day * 1000]) =>
  whole(description, "ms", range);
export const millisOr = (description: string, range: Range = [1, day * 1000]) =>
  wholeOr(description, "ms", range);
export const bytes = (description: string, range: Range = [1024, 2 ** 40]) =>
  whole(description, "bytes", range);
export const bytesOr = (description: string, range: Range = [2 ** 20, 2 ** 50]) =>
  wholeOr(description, "bytes", range);
export const count = (description: string, unit: string, range: Range = [1, 1_000_000]) =>
  whole(description, unit, range);
export const countOr = (description: string, unit: string, range: Range = [1, 1_000_000]) =>
  wholeOr(description, unit, range);

export const ratio = (description: string, range: Range) => (value: number) =>
  Type.Number({ description, unit: "×", minimum: range[0], maximum: range[1], default: value });
export const switched = (description: string) => (value: boolean) =>
  Type.Boolean({ description, default: value });
export const texts = (description: string, form: string) => (value: string[]) =>
  Type.Array(Type.String({ minLength: 1 }), { description, form, default: value });
export const text =
  (description: string) =>
  (value: string, about: About = {}) =>
    Type.String({ description, default: value, minLength: 1, ...about });
export const textOr =
  (description: string) =>
  (otherwise: string, about: About = {}) =>
    Type.Unsafe<string | null>({
      type: ["string", "null"],
      description,
      default: null,
      minLength: 1,
      otherwise,
      ...about,
    });
export const textsOr = (description: string, form: string) => (otherwise: string) =>
  Type.Unsafe<readonly string[] | null>({
    type: ["array", "null"],
    items: { type: "string", minLength: 1 },
    description,
    form,
    default: null,
    otherwise,
  });
/** A text that becomes a `Secret` when the configuration is compiled. */
export type SecretText = string & { readonly [secretText]: true };
declare const secretText: unique symbol;
export const secretOr = (description: string) => (otherwise: string, about: About) =>
  Type.Unsafe<SecretText | null>({ ...textOr(description)(otherwise, about), secret: true });
export const oneOf =
  <const Values extends readonly string[]>(description: string, values: Values) =>
  (value: Values[number], about: About = {}) =>
    Type.Unsafe<Values[number]>({ type: "string", enum: values, description, default: value, ...about });
