import { expect, test } from "vitest";
import { Places } from "../../src/base/places.js";

test("a place is used again, and whoever had it before takes nothing from it", () => {
  const places = new Places<string>();
  const [one, two] = [places.add("one"), places.add("two")];
  expect(places.remove(one, "one")).toBe(true);
  const three = places.add("three");
  expect(three).toBe(one);
  expect(places.remove(one, "one")).toBe(false);
  expect(places.all().toSorted()).toEqual(["three", "two"]);
  expect([places.remove(two, "two"), places.remove(three, "three"), places.remove(three, "three")]).toEqual([
    true,
    true,
    false,
  ]);
  expect(places.all()).toEqual([]);
  expect([places.add("four"), places.add("five")].toSorted()).toEqual([0, 1]);
});
