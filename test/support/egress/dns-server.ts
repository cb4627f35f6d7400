import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";

/**
 * What a name is answered: its A and AAAA addresses (none: NXDOMAIN), a server's failure, or nothing at all.
 */
export type Answer = readonly string[] | "servfail" | "silent";
/** `turns`: one answer per query of each type, the last one for good; so does a rebinding name behave. */
export type Entry = Answer | { readonly turns: readonly Answer[] };

export interface Dns {
  readonly address: string;
  readonly port: number;
  /** `address:port`, as a resolver takes it. */
  readonly server: string;
  /** What was asked, in order, as `A name` or `AAAA name`. */
  readonly queries: readonly string[];
  set(name: string, entry: Entry): void;
  close(): Promise<void>;
}

const types = new Map([
  [1, "A"],
  [28, "AAAA"],
]);
const headerBytes = 12;

/**
 * A real DNS server on a UDP port, loopback's unless told, answering from `table`: names in lower case, or as
 * in `queries` for one type only; unknown ones do not exist.
 */
export async function startDns(
  table: Readonly<Record<string, Entry>> = {},
  at = { address: "127.0.0.1", port: 0 },
): Promise<Dns> {
  const entries = new Map(Object.entries(table));
  const queries: string[] = [];
  const answerTo = (query: string): Answer => {
    const entry = entries.get(query) ?? entries.get(query.replace(/^\w+ /, "")) ?? [];
    if (typeof entry === "string" || !("turns" in entry)) return entry;
    const turn = queries.filter((earlier) => earlier === query).length - 1;
    return entry.turns[Math.min(turn, entry.turns.length - 1)] ?? [];
  };
  const socket = createSocket(isIPv4(at.address) ? "udp4" : "udp6");
  socket.on("message", (message, { port, address }) => {
    const question = readQuestion(message);
    queries.push(`${question.type} ${question.name}`);
    const answer = answerTo(`${question.type} ${question.name}`);
    if (answer !== "silent") socket.send(reply(message, question, answer), port, address);
  });
  socket.bind(at.port, at.address);
  await once(socket, "listening");
  const { port } = socket.address();
  return {
    address: at.address,
    port,
    server: `${at.address}:${port}`,
    queries,
    set: (name, entry) => void entries.set(name, entry),
    close: () => new Promise((resolve) => void socket.close(resolve)),
  };
}

interface Question {
  readonly name: string;
  readonly type: string;
  /** Where the question ends in the packet. */
  readonly end: number;
}

function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = headerBytes;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("ascii", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1);
  return { name: labels.join(".").toLowerCase(), type: types.get(type) ?? String(type), end: at + 5 };
}

/** The question, and those of the addresses that are of the type asked for. */
function reply(message: Buffer, { type, end }: Question, answer: Exclude<Answer, "silent">): Buffer {
  const isFailure = answer === "servfail";
  const records = (isFailure ? [] : answer)
    .filter((address) => type === (isIPv4(address) ? "A" : "AAAA"))
    .map(recordOf);
  const packet = Buffer.from(message.subarray(0, end));
  const code = isFailure ? 2 : answer.length === 0 ? 3 : 0;
  packet.writeUInt16BE(0x8180 | code, 2); // an answer, recursion available
  packet.writeUInt16BE(records.length, 6);
  packet.writeUInt32BE(0, 8); // no authority, no additional records
  return Buffer.concat([packet, ...records]);
}

/** The question's name (a pointer to it), type, class IN, TTL 0, data. */
function recordOf(address: string): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split(".").map(Number)) : ipv6Bytes(address);
  const head = Buffer.alloc(headerBytes);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isIPv4(address) ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [left = [], right = []] = plain.split("::").map((part) => part.split(":").filter(Boolean));
  const groups = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => "0"), ...right];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
}
