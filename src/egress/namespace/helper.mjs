// Makes network namespaces for the daemon that started it, one for each request on Node.js's channel, and
// ends with that channel. It is plain JavaScript, so that a checkout can start it as it is.
//
// A socket belongs for ever to the network namespace it was opened in, so a process has to be there to open
// it: this one, whose main thread goes on into the next namespace and never comes back. The daemon itself
// stays where it is.
import { createServer } from "node:net";
import koffi from "koffi";

// These values are those of the kernel's headers, for all architectures that koffi has builds for.
const newNetwork = 0x4000_0000;
const netlink = 16;
const rawClosedOnExec = 3 | 0o2000000;
const route = 0;
const answerBytes = 4096;

const library = koffi.load(null);

/** A call of the C library that throws with the error number where the kernel refuses. */
function call(name, declaration) {
  const run = library.func(declaration);
  return (...args) => {
    const result = Number(run(...args));
    if (result < 0) throw new Error(`${name} failed with error ${koffi.errno()}`);
    return result;
  };
}
const unshare = call("unshare", "int unshare(int flags)");
const socket = call("socket", "int socket(int domain, int type, int protocol)");
const send = call("send", "long send(int fd, void *from, size_t length, int flags)");
const recv = call("recv", "long recv(int fd, void *into, size_t length, int flags)");
const close = call("close", "int close(int fd)");

const headerBytes = 16;

/** Sends a message of rtnetlink(7) that asks for an answer, and reads that: a negative error number, or 0. */
function ask(fd, { what, bytes }) {
  const message = Buffer.from(bytes, "base64");
  const answer = new Int32Array(answerBytes / 4);
  send(fd, message, message.length, 0);
  recv(fd, answer, answerBytes, 0);
  const error = answer[headerBytes / 4];
  if (error !== 0) throw new Error(`${what} failed with error ${-error}`);
}

function configure(messages) {
  const fd = socket(netlink, rawClosedOnExec, route);
  try {
    for (const message of messages) ask(fd, message);
  } finally {
    close(fd);
  }
}

const listen = (port) =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });

async function make({ port, messages }) {
  unshare(newNetwork);
  configure(messages);
  const server = await listen(port);
  // The daemon has a descriptor of its own once this has been sent.
  process.send({ kind: "made" }, server, () => server.close());
}

process.on("message", (request) => {
  make(request).catch((error) => process.send({ kind: "refused", why: error.message }));
});
