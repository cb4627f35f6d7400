import { type ErrorCode, errors } from "../base/errors.js";

const rowOf = (code: ErrorCode): string => {
  const { status, retry, message } = errors[code];
  return `| \`${code}\` | ${status} | ${retry ? "yes" : "no"} | ${message} |`;
};

/** Every code the API answers, for docs/errors.md: a test holds the two equal. */
export const errorsTable = (): string =>
  [
    "| code | status | may a retry help | meaning |",
    "| --- | --- | --- | --- |",
    ...(Object.keys(errors) as ErrorCode[]).map(rowOf),
  ].join("\n");
