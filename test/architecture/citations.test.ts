import { expect, test } from "vitest";
import { faultOfPlace, files, textOf } from "./documents.js";

const cited = /(?<![\w/.-])((?:[\w-]+\/)*[\w-]+\.md)(?:#([\w-]+))?/g;
const decided = /\bDECISIONS(?:\.md)?[ ,]+(\d+)/g;
const code = files.filter(
  (path) =>
    /^(src|test|scripts|config|k8s)\/|^Dockerfile$/.test(path) &&
    /(\.(ts|mjs|lua|json|yaml|sh|pl)|Dockerfile)$/.test(path),
);

/** What a comment sends a reader to, such as `docs/api.md#reuse`, `README.md` or `DECISIONS.md 4`. */
const faultsOf = (path: string): readonly string[] => {
  const text = textOf(path);
  const decisions = textOf("DECISIONS.md");
  const hasDecision = (number: string): boolean =>
    new RegExp(`^(?:<a id="${number}"></a>.*|${number}\\. )`, "m").test(decisions);
  return [
    ...[...text.matchAll(cited)].map(([, page, section]) => faultOfPlace(page ?? "", section)),
    ...[...text.matchAll(decided)].map(([, number = ""]) =>
      hasDecision(number) ? undefined : `DECISIONS.md has no ${number}`,
    ),
  ]
    .filter((fault) => fault !== undefined)
    .map((fault) => `${path}: ${fault}`);
};

test("every page, section and decision that the code cites is in the repository", () => {
  expect(code.length).toBeGreaterThan(100);
  expect(code.flatMap(faultsOf)).toEqual([]);
});

const named = /(?:\/\/|^\s*\/?\*).*?(?<![\w*./-])((?:[\w-]+\/)*[\w-]+\.ts)\b/gm;

test("every file that a comment names is there", () => {
  const isThere = (name: string): boolean => files.some((path) => `/${path}`.endsWith(`/${name}`));
  const absent = code.flatMap((path) =>
    [...textOf(path).matchAll(named)]
      .filter(([, name = ""]) => !isThere(name))
      .map(([, name]) => `${path}: there is no ${name}`),
  );
  expect(absent).toEqual([]);
});

test("a citation of what a reader does not have is an offence", () => {
  expect(faultOfPlace("docs/absent", undefined)).toBe("there is no docs/absent");
  expect(faultOfPlace("docs/api.md", "nowhere")).toBe("docs/api.md has no section #nowhere");
});
