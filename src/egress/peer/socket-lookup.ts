/** One end of a connection over IPv4, as whoever holds that end sees it. */
export interface ConnectionEnd {
  readonly address: string;
  readonly port: number;
  readonly peerAddress: string;
  readonly peerPort: number;
}

/**
 * `held` by a process; `gone` where no process holds that end any more; `unavailable` where the kernel is not
 * to be asked: koffi has no build for this platform, a container forbids the call, or the kernel lacks it.
 */
type SocketLookup =
  | { readonly kind: "held"; readonly uid: number }
  | { readonly kind: "gone" | "unavailable" };

type Call = (...args: readonly unknown[]) => number;

// These values are those of the kernel's headers, and equal on all architectures that koffi has builds for.
const [netlink, socketDiag] = [16, 4];
const rawNonBlockingClosedOnExec = 3 | 0o4000 | 0o2000000;
const [byFamily, isRequest] = [20, 1];
const [inet, tcp] = [2, 6];
const headerBytes = 16;
const requestBytes = headerBytes + 56;
const anyCookie = 0xffff_ffff;

/**
 * `struct inet_diag_req_v2` behind a `struct nlmsghdr` (sock_diag(7)), without NLM_F_DUMP: it asks for one
 * socket. The kernel finds one of IPv6 too that has dialled an address of IPv4.
 */
function requestFor({ address, port, peerAddress, peerPort }: ConnectionEnd): Buffer {
  const request = Buffer.alloc(requestBytes);
  request.writeUInt32LE(requestBytes, 0);
  request.writeUInt16LE(byFamily, 4);
  request.writeUInt16LE(isRequest, 6);
  request.set([inet, tcp], headerBytes);
  request.writeUInt16BE(port, 24);
  request.writeUInt16BE(peerPort, 26);
  request.set(address.split(".").map(Number), 28);
  request.set(peerAddress.split(".").map(Number), 44);
  request.writeUInt32LE(anyCookie, 64);
  request.writeUInt32LE(anyCookie, 68);
  return request;
}

/** What is read of the answer, a `struct inet_diag_msg`, ends with the number of the inode. */
const answerBytes = headerBytes + 72;

function uidIn(answer: Buffer, { port, peerPort }: ConnectionEnd): SocketLookup {
  if (answer.readUInt16LE(4) !== byFamily || answer.length < answerBytes) return { kind: "gone" };
  // Where there is no such connection the kernel tells of a socket that listens at its port.
  if (answer.readUInt16BE(20) !== port || answer.readUInt16BE(22) !== peerPort) return { kind: "gone" };
  // A socket that its process has closed has no inode, and may say uid 0.
  return answer.readUInt32LE(84) === 0 ? { kind: "gone" } : { kind: "held", uid: answer.readUInt32LE(80) };
}

/** The kernel's answer; undefined where it gives none. */
function askKernel(end: ConnectionEnd): Buffer | undefined {
  const descriptor = libc ? libc.socket(netlink, rawNonBlockingClosedOnExec, socketDiag) : -1;
  if (!libc || descriptor < 0) return undefined;
  try {
    // The kernel has answered by the time that send returns.
    if (libc.send(descriptor, requestFor(end), requestBytes, 0) !== requestBytes) return undefined;
    const answer = Buffer.alloc(512);
    const length = libc.recv(descriptor, answer, answer.length, 0);
    return length < headerBytes ? undefined : answer.subarray(0, length);
  } finally {
    libc.close(descriptor);
  }
}

/**
 * Whether the kernel can be asked, which its first answer decides: a kernel without this says "no such
 * socket" as well, and each question may have it look for a module.
 */
let canAsk: boolean | undefined;

/**
 * Asks the kernel for the one socket of this network namespace. It takes 5 us whatever else is open, and
 * answers at once, so that nobody else can have come by the port meanwhile. To be asked first for a socket
 * that is there.
 */
export function lookUpSocket(end: ConnectionEnd): SocketLookup {
  const answer = canAsk === false ? undefined : askKernel(end);
  const found: SocketLookup = answer ? uidIn(answer, end) : { kind: "unavailable" };
  canAsk ??= found.kind === "held";
  return canAsk ? found : { kind: "unavailable" };
}

const libc =
  process.platform === "linux"
    ? await import("koffi").then(
        ({ default: koffi }) => {
          const library = koffi.load(null);
          const call = (declaration: string): Call => library.func(declaration) as unknown as Call;
          return {
            socket: call("int socket(int domain, int type, int protocol)"),
            send: call("long send(int fd, const void *from, size_t length, int flags)"),
            recv: call("long recv(int fd, void *into, size_t length, int flags)"),
            close: call("int close(int fd)"),
          };
        },
        () => undefined,
      )
    : undefined;
