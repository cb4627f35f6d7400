import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { setPriority } from "node:os";
import { wholeOf } from "../../browser/cdp/frame.js";
import { Conversation, type MapperSetup, parseSetup } from "./conversation.js";
import { Mapper } from "./mapper.js";
import { goodbye, PacketReader, writePacket } from "./packets.js";

/** The daemon goes first. */
const priority = 10;
/** The most that may wait for the daemon in either stream; one message may be this long by itself. */
const mostUnsentBytes = 128 * 1024 * 1024;

setPriority(priority);
// Where the browser's memory is counted together, the kernel ends this before it ends the browser.
try {
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // There is no /proc here, or none that may be written to.
}
// What the mapper has begun for a page that is gone fails somewhere that nobody waits for.
process.on("unhandledRejection", () => {});

const open = (fd: number): Socket => new Socket({ fd, readable: true, writable: true });
/** What the client says, and what its browser does. */
const [client, browser] = [open(3), open(4)];
/** The daemon asks whether this process still does anything. */
const [pings, pongs] = [open(0), open(1)];
const exit = (): void => process.exit();
for (const socket of [client, browser, pings, pongs]) socket.on("error", exit).on("close", exit);

const sendTo =
  (socket: Socket) =>
  (message: string): void => {
    // Thrown into the mapper it would be lost, with the message, and nobody would be told.
    if (socket.writableLength > mostUnsentBytes) exit();
    writePacket(socket, message);
  };

const toBrowser = sendTo(browser);
let conversation: Conversation | undefined;
const mapper = new Mapper({ toClient: (message) => conversation?.toClient(message), toBrowser });

function begin(setup: MapperSetup): void {
  conversation = new Conversation({
    setup,
    mapper,
    send: sendTo(client),
    end: () => writePacket(client, goodbye),
  });
}

const fromClient = new PacketReader((frame) => {
  const message = wholeOf(frame);
  if (conversation) conversation.take(message);
  else begin(parseSetup(message.toString()));
});
const fromBrowser = new PacketReader((frame) => mapper.fromBrowser(wholeOf(frame).toString()));
client.on("data", (chunk: Buffer) => fromClient.push(chunk));
pings.on("data", (chunk: Buffer) => pongs.write(chunk));
browser.on("data", (chunk: Buffer) => fromBrowser.push(chunk));
