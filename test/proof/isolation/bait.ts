import type {
  ProtocolCommand,
  ProtocolDomain,
  ProtocolType,
} from "../../support/gateway/installed-protocol.js";

/** What a command is given: `named` by the parameter's name, `text` for any other that is a text. */
export interface Bait {
  readonly text: string;
  readonly named: Readonly<Record<string, unknown>>;
}

export interface Message {
  readonly method: string;
  readonly params: object;
}

/**
 * These end, halt or undo what they are sent to, by design, so that whatever comes with them would not be
 * tried.
 */
const endings = new Set([
  "Browser.close",
  "Browser.crash",
  "Browser.crashGpuProcess",
  "Debugger.pause",
  "Emulation.setScriptExecutionDisabled",
  "Emulation.setVirtualTimePolicy",
  "Input.cancelDragging",
  "Input.setIgnoreInputEvents",
  "Input.setInterceptDrags",
  "Memory.forciblyPurgeJavaScriptMemory",
  "Memory.prepareForLeakDetection",
  "Page.close",
  "Page.crash",
  "Page.setWebLifecycleState",
  "Page.waitForDebugger",
  "Runtime.terminateExecution",
  // Given to the browser instead of a page it ends Chromium 156, by a fault of that.
  "Storage.deleteStorageBucket",
  "Target.closeTarget",
  "Target.detachFromTarget",
  "Target.disposeBrowserContext",
  "Tethering.unbind",
]);

/** What enables comes first, what undoes comes last. */
const orderOf = (name: string): number =>
  /^(?:enable|start)/.test(name)
    ? 0
    : /^(?:clear|close|delete|disable|discard|end|release|remove|reset|stop|set(?:Outer|Node|Attribute))/.test(
          name,
        )
      ? 2
      : 1;

/**
 * A command that is given one that is not there, or asks for what another mode of the browser has, does
 * nothing.
 */
const leftOut = new Set([
  "background",
  "browserContextId",
  "focus",
  "enableBeginFrameControl",
  "forTab",
  "hidden",
  "loaderId",
  "referrer",
  "uniqueContextId",
]);
/** Other names of a node: the first is asked for, and it is void once the document is asked for anew. */
const otherNames = new Set(["nodeId", "backendNodeId"]);
const deepest = 3;

/** Every command of the domain with every parameter filled; one that has a choice is sent once for each. */
export function messagesOf(protocol: readonly ProtocolDomain[], domain: string, bait: Bait): Message[] {
  const commands = protocol.find((each) => each.domain === domain)?.commands ?? [];
  const wanted = commands.filter(({ name }) => !endings.has(`${domain}.${name}`));
  return wanted
    .toSorted((one, other) => orderOf(one.name) - orderOf(other.name))
    .flatMap((command) =>
      chosen(command, bait).map((choice) => ({
        method: `${domain}.${command.name}`,
        params: paramsOf(command, choice, { protocol, domain, bait }),
      })),
    );
}

type Choice = Readonly<Record<string, string>>;

/** The values of the first parameter that is a choice. */
function chosen({ parameters = [] }: ProtocolCommand, { named }: Bait): readonly Choice[] {
  const found = parameters.find((each) => each.enum !== undefined);
  return found?.name === undefined || found.name in named
    ? [{}]
    : (found.enum ?? []).map((value) => ({ [found.name ?? ""]: value }));
}

interface Filling {
  readonly protocol: readonly ProtocolDomain[];
  readonly domain: string;
  readonly bait: Bait;
}

function paramsOf({ parameters = [] }: ProtocolCommand, choice: Choice, filling: Filling): object {
  const isOfObject = parameters.some(({ name }) => name === "objectId");
  const given = parameters.filter(
    ({ name = "" }) => !leftOut.has(name) && !(isOfObject && otherNames.has(name)),
  );
  return Object.fromEntries(
    given.map((each) => [each.name, choice[each.name ?? ""] ?? valueOf(each, filling, 0)]),
  );
}

function valueOf(
  { name = "", type, $ref, items, properties, ...given }: ProtocolType,
  filling: Filling,
  depth: number,
): unknown {
  const { bait } = filling;
  const named = bait.named[name];
  if (named !== undefined) return named;
  if ($ref !== undefined) return refer($ref, name, { filling, depth });
  if (given.enum !== undefined) return given.enum[0];
  if (type === "array") return depth > deepest ? [] : [valueOf({ name, ...items }, filling, depth + 1)];
  if (type === "object")
    return depth > deepest
      ? {}
      : Object.fromEntries((properties ?? []).map((each) => [each.name, valueOf(each, filling, depth + 1)]));
  if (type === "integer" || type === "number") return 1;
  return type === "boolean" ? true : bait.text;
}

/** A type by its name, `Domain.Type` or of the same domain. */
function refer(ref: string, name: string, { filling, depth }: { filling: Filling; depth: number }): unknown {
  const [domain = "", type = ""] = ref.includes(".") ? ref.split(".") : [filling.domain, ref];
  const found = filling.protocol.find((each) => each.domain === domain)?.types?.find(({ id }) => id === type);
  return depth > deepest ? undefined : valueOf({ ...found, name }, { ...filling, domain }, depth + 1);
}
