import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The files that take longest, those first that take most: `npm test` prints the slowest ten. A clone that
 * has never run its tests would begin them by size.
 */
const slowest = [
  "test/proof/egress/corpus",
  "test/browser/policy/internal-pages",
  "test/proof/isolation/corpus",
  "test/system/outages/killed-daemon",
  "test/browser/extensions/extensions",
  "test/system/roles",
  "test/browser/reset/reset",
  "test/system/outages/killed-making",
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const at = slowest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  return at === -1 ? slowest.length : at;
};

/** Begins the longest files first, so that no run ends with one long file beside idle processors. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
