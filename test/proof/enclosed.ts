import { bound } from "../support/bound.js";

/**
 * A command that runs another with processes and mounts of its own, and with a network of its own where that
 * is asked for. What it starts, mounts and links ends with it, and it ends with whoever has started it,
 * however that ends.
 */
export const enclosed = (
  { hasOwnNetwork }: { readonly hasOwnNetwork: boolean },
  ...command: readonly string[]
): readonly string[] => [
  ...bound("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL"),
  "--mount-proc",
  ...(hasOwnNetwork ? ["--net"] : []),
  "--",
  ...command,
];
