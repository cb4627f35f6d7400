import { expect, test } from "vitest";
import { fileParams } from "../../../src/gateway/gates/file-parameters.js";
import { paramsNamed, types } from "../../support/gateway/protocol-params.js";

const found = paramsNamed((name) => /path|file|ur[il]|dir|folder/i.test(name));

test("the protocol types were read", () => {
  expect(types.size).toBeGreaterThan(1000);
  expect(found).toContain("Input.dispatchDragEvent.data.files");
});

test("every parameter of the protocol that may name a file or an address is classified", () => {
  expect(found.filter((path) => fileParams[path] === undefined)).toEqual([]);
});

test("nothing is classified that the protocol does not have", () => {
  expect(Object.keys(fileParams).filter((path) => !found.includes(path))).toEqual([]);
});
