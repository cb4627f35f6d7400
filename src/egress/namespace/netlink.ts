import { endianness } from "node:os";

/** A message of rtnetlink(7), with words for a failure. */
export interface NetlinkMessage {
  readonly what: string;
  /** The message in base64. */
  readonly bytes: string;
}

// These values are those of linux/netlink.h, linux/rtnetlink.h, linux/if_link.h and linux/veth.h.
const newLink = 16;
const setLink = 19;
const newAddress = 20;
const newRoute = 24;
const requestWithAnswer = 0x1 | 0x4;
const create = 0x400 | 0x200;
const nested = 0x8000;
const inet = 2;
const inet6 = 10;
const up = 1;

const isLittle = endianness() === "LE";

/** Numbers in the byte order of this machine, as netlink has them. */
function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  return isLittle ? (bytes.writeUInt16LE(value), bytes) : (bytes.writeUInt16BE(value), bytes);
}
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  return isLittle ? (bytes.writeUInt32LE(value), bytes) : (bytes.writeUInt32BE(value), bytes);
}

const headerBytes = 16;
const name = (text: string): Buffer => Buffer.from(`${text}\0`);
const address = (text: string): Buffer => Buffer.from(text.split(".").map(Number));

/** An attribute: its length without the padding to four bytes, its type, its value. */
function attribute(type: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  const padding = Buffer.alloc((4 - (value.length % 4)) % 4);
  return Buffer.concat([u16(value.length + 4), u16(type), value, padding]);
}

/** `ifinfomsg`: family, padding, device type, index, flags, which of the flags count. */
const linkInfo = (index: number, flags = 0): Buffer =>
  Buffer.concat([Buffer.alloc(4), u32(index), u32(flags), u32(flags)]);

function message(
  what: string,
  { type, flags = 0 }: { type: number; flags?: number },
  body: readonly Buffer[],
): NetlinkMessage {
  const payload = Buffer.concat(body);
  const header = [
    u32(payload.length + headerBytes),
    u16(type),
    u16(requestWithAnswer | flags),
    u32(1),
    u32(0),
  ];
  return { what, bytes: Buffer.concat([...header, payload]).toString("base64") };
}

const ifName = 3;
const ifLinkInfo = 18;
const ifAfSpec = 26;

/**
 * A new network namespace has loopback as its first device; ours come after it, their numbers asked for by
 * us.
 */
const loopback = 1;
const device = 2;
const peer = 3;

const setUp = (what: string, index: number): NetlinkMessage =>
  message(what, { type: setLink }, [linkInfo(index, up)]);

const addPair = message("adding a pair of devices", { type: newLink, flags: create }, [
  linkInfo(device),
  attribute(ifName, name("eth0")),
  attribute(
    ifLinkInfo | nested,
    attribute(1, name("veth")),
    attribute(2 | nested, attribute(1 | nested, linkInfo(peer), attribute(ifName, name("eth1")))),
  ),
]);

/** The device gets no IPv6 address of its own. */
const keepBare = (index: number): NetlinkMessage =>
  message("keeping IPv6 addresses away", { type: setLink }, [
    linkInfo(index),
    attribute(ifAfSpec | nested, attribute(inet6 | nested, attribute(8, Buffer.from([1])))),
  ]);

const here = "10.255.255.2";
/** No machine has this address. */
const gateway = "10.255.255.1";

const addAddress = message("adding an address", { type: newAddress, flags: create }, [
  // `ifaddrmsg`: family, length of the prefix, flags, scope, index.
  Buffer.from([inet, 24, 0, 0]),
  u32(device),
  attribute(2, address(here)),
  attribute(1, address(here)),
]);

const addRoute = message("adding a route", { type: newRoute, flags: create }, [
  // `rtmsg`: family, lengths of the prefixes, type of service, the main table, set up by hand, anywhere,
  // unicast, flags.
  Buffer.from([inet, 0, 0, 0, 254, 4, 0, 1]),
  u32(0),
  attribute(5, address(gateway)),
  attribute(4, u32(device)),
]);

const loopbackUp = setUp("setting loopback up", loopback);
const pairUp = [
  addAddress,
  setUp("setting a device up", device),
  setUp("setting its peer up", peer),
  addRoute,
];

/**
 * What is tried, the best first. A network that leads nowhere, without which `navigator.onLine` is false: a
 * pair of veth devices is the one kind that every kernel with namespaces seems to have (dummy is a module of
 * its own). Each device would get an IPv6 address of its own about a second later (Linux 6.18,
 * docs/chromium.md#ways-past-the-proxy), and Chromium breaks off whatever it loads when its addresses change
 * (ERR_NETWORK_CHANGED); a kernel without IPv6 knows no such mode, and needs none.
 */
export const networks: readonly (readonly NetlinkMessage[])[] = [
  [loopbackUp, addPair, keepBare(device), keepBare(peer), ...pairUp],
  [loopbackUp, addPair, ...pairUp],
  [loopbackUp],
];
