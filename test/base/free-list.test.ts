import { expect, test } from "vitest";
import { FreeList } from "../../src/base/free-list.js";

test("a place is used again, and whoever had it before takes nothing from it", () => {
  const list = new FreeList<string>();
  const [one, two] = [list.add("one"), list.add("two")];
  expect(list.remove(one, "one")).toBe(true);
  const three = list.add("three");
  expect(three).toBe(one);
  expect(list.remove(one, "one")).toBe(false);
  expect(list.all().toSorted()).toEqual(["three", "two"]);
  expect([list.remove(two, "two"), list.remove(three, "three"), list.remove(three, "three")]).toEqual([
    true,
    true,
    false,
  ]);
  expect(list.all()).toEqual([]);
  expect([list.add("four"), list.add("five")].toSorted()).toEqual([0, 1]);
});
