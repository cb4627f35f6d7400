import { type RungName, rungNames } from "../../spec/bodies.js";

/** The ways to make the mounts of a private root, named for who may make them. */
type Form = "root" | "user-namespace";

export interface Rung {
  readonly name: RungName;
  /** Absent where the browser has no private root. */
  readonly forms?: readonly Form[];
  /**
   * `own` is a `/proc` of its own process namespace; `container` is the container's, in which the browser
   * sees that others run, and no more.
   */
  readonly proc?: "own" | "container";
  /** True where Chromium's own sandbox is required to stay on; only `none` takes what the machine grants. */
  readonly hasSandbox: boolean;
  readonly meaning: string;
}

/**
 * The kinds of isolation, the strongest first. A starting daemon tries them in this order, each with the very
 * options of bwrap(1) that browsers get, and takes the first that holds; below `node.require_isolation` it
 * launches nothing. docs/isolation.md explains them.
 */
export const rungs = [
  {
    name: "root-mounts",
    forms: ["root"],
    proc: "own",
    hasSandbox: true,
    meaning: "a private root whose mounts the daemon makes as root; a uid of its own",
  },
  {
    name: "user-namespace",
    forms: ["user-namespace"],
    proc: "own",
    hasSandbox: true,
    meaning: "a private root made in a user namespace",
  },
  {
    name: "shared-proc",
    forms: ["user-namespace"],
    proc: "container",
    hasSandbox: true,
    meaning:
      "as user-namespace, where the container masks /proc: names and command lines of other processes show",
  },
  {
    name: "no-sandbox",
    forms: ["root", "user-namespace"],
    proc: "own",
    hasSandbox: false,
    meaning: "a private root without Chromium's own sandbox, which the kernel refuses",
  },
  {
    name: "none",
    hasSandbox: false,
    meaning: "no private root: browsers see the host's files. For one tenant only",
  },
] as const satisfies readonly Rung[];

/** Lists the rungs that may be used where `required` is the weakest allowed, the strongest first. */
export const rungsFrom = (required: RungName): readonly Rung[] =>
  rungs.slice(0, rungNames.indexOf(required) + 1);

export const hasPrivateRoot = (name: RungName): boolean => name !== "none";
