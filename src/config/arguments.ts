const commands = ["verify-audit", "rewrap-vaults"] as const;
type CommandName = (typeof commands)[number];

/** What the command line asks for; everything else is a setting. */
type Arguments =
  /** `openLoopback`: every port of this machine's loopback, or one. */
  | { readonly kind: "start"; readonly openLoopback?: "all" | number }
  | { readonly kind: "help" }
  /** Another command, which reads its own arguments. */
  | { readonly kind: CommandName; readonly args: readonly string[] }
  | { readonly kind: "refused"; readonly fault: string };

const refused = (fault: string): Arguments => ({
  kind: "refused",
  fault: `${fault}; --help lists every setting`,
});

export function parseArguments(args: readonly string[]): Arguments {
  const command = commands.find((name) => name === args[0]);
  if (command) return { kind: command, args: args.slice(1) };
  if (args.includes("--help") || args.includes("-h")) return { kind: "help" };
  const others = args.filter((arg) => !/^--open-loopback(?:=|$)/.test(arg));
  if (others.length > 0) return refused(`${others.join(" ")} is not understood`);
  const [asked, ...more] = args;
  if (asked === undefined) return { kind: "start" };
  if (more.length > 0)
    return refused("--open-loopback may be given once: private hosts beyond it are settings");
  if (!asked.includes("=")) return { kind: "start", openLoopback: "all" };
  const port = asked.slice("--open-loopback=".length);
  const isPort = /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535;
  return isPort
    ? { kind: "start", openLoopback: Number(port) }
    : refused("--open-loopback= takes one port, from 1 to 65535");
}

/** The private hosts that `--open-loopback` opens to browsers. */
export const loopbackHosts = (opened: "all" | number): readonly string[] =>
  opened === "all"
    ? ["127.0.0.0/8", "[::1]", "localhost"]
    : [`127.0.0.1:${opened}`, `[::1]:${opened}`, `localhost:${opened}`];
