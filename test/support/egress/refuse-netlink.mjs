// To be preloaded (`node --import`): the kernel refuses this thread sockets of netlink from here on, as it does
// under a seccomp profile of a container (seccomp(2)).
import koffi from "koffi";

// These values are those of the kernel's headers.
const socketCall = { x64: 41, arm64: 198 }[process.arch];
const netlink = 16;
const notSupported = 97;
const [setSeccomp, setNoNewPrivileges, filterMode] = [22, 38, 2];
const [load, jumpIfEqual, give] = [0x20, 0x15, 0x06];
const [numberAt, firstArgumentAt] = [0, 16];
const [refuse, allow] = [0x0005_0000 + notSupported, 0x7fff_0000];

const steps = [
  { code: load, value: numberAt },
  { code: jumpIfEqual, value: socketCall, orSkip: 3 },
  { code: load, value: firstArgumentAt },
  { code: jumpIfEqual, value: netlink, orSkip: 1 },
  { code: give, value: refuse },
  { code: give, value: allow },
];
const filter = Buffer.alloc(8 * steps.length);
steps.forEach(({ code, value, orSkip = 0 }, at) => {
  filter.writeUInt16LE(code, 8 * at);
  filter.writeUInt8(orSkip, 8 * at + 3);
  filter.writeUInt32LE(value, 8 * at + 4);
});

const library = koffi.load(null);
koffi.struct("sock_fprog", { len: "uint16_t", filter: "const void *" });
const prctl = library.func(
  "int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)",
);
const prctlWithProgram = library.func("int prctl(int option, unsigned long mode, const sock_fprog *program)");
if (
  prctl(setNoNewPrivileges, 1, 0, 0, 0) !== 0 ||
  prctlWithProgram(setSeccomp, filterMode, { len: steps.length, filter }) !== 0
)
  throw new Error(`netlink could not be refused: error ${koffi.errno()}`);
