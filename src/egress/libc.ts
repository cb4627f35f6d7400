/**
 * The calls of the C library that Node.js does not offer. Network namespaces belong to a thread (setns(2)), so all of
 * them act on the calling thread alone. Each throws with the error number where the kernel refuses.
 */
export interface Libc {
  /** Moves this thread into a new network namespace. Takes CAP_SYS_ADMIN. */
  leaveNetwork(): void;
  /** Moves this thread into the network namespace that the descriptor is open on. */
  enterNetwork(namespace: number): void;
  /** Opens a socket that listens on 127.0.0.1 in this thread's network namespace, and gives its descriptor. */
  listen(port: number): number;
}

// From the kernel's headers, for all architectures koffi has builds for.
const newNetwork = 0x4000_0000;
const inet = 2;
const streamClosedOnExecNonBlocking = 1 | 0o2000000 | 0o4000;
const backlog = 511;

/** Throws where koffi has no build for this platform. Loaded late: nothing but the namespace tier needs it. */
export async function loadLibc(): Promise<Libc> {
  const { default: koffi } = await import("koffi");
  const library = koffi.load(null);
  const call = (declaration: string): ((...args: readonly unknown[]) => number) => {
    const run = library.func(declaration);
    return (...args) => {
      const result = run(...args) as number;
      if (result < 0) throw new Error(`${declaration} failed with error ${koffi.errno()}`);
      return result;
    };
  };
  const unshare = call("int unshare(int flags)");
  const setns = call("int setns(int fd, int kind)");
  const socket = call("int socket(int domain, int type, int protocol)");
  const bind = call("int bind(int fd, void *address, uint32_t length)");
  const listen = call("int listen(int fd, int backlog)");
  const close = call("int close(int fd)");
  return {
    leaveNetwork: () => void unshare(newNetwork),
    enterNetwork: (namespace) => void setns(namespace, newNetwork),
    listen(port) {
      const fd = socket(inet, streamClosedOnExecNonBlocking, 0);
      try {
        const address = loopback(port);
        bind(fd, address, address.length);
        listen(fd, backlog);
        return fd;
      } catch (error) {
        close(fd);
        throw error;
      }
    },
  };
}

/** A `sockaddr_in` of 127.0.0.1: the family in the machine's byte order, all else in the network's (ip(7)). */
function loopback(port: number): Buffer {
  const address = Buffer.from(new Uint16Array(8).fill(inet, 0, 1).buffer);
  address.writeUInt16BE(port, 2);
  address.set([127, 0, 0, 1], 4);
  return address;
}
