import { hostname } from "node:os";
import type { ProcessAttempt } from "./attempt.js";

const process = (name: string, script: string, other: Partial<ProcessAttempt> = {}): ProcessAttempt => ({
  name,
  vector: "process",
  script,
  succeedsPlain: true,
  ...other,
});
const asRoot = { succeedsPlain: "as root" } as const;
const quick = { isQuick: true } as const;

/** These programs run in the place of the browser's first process, with its rights and in its namespaces. */
export const processes: readonly ProcessAttempt[] = [
  process("read files of the host", "read", quick),
  process("read files through /proc of its own processes", "read_through_processes", quick),
  process("read what its own processes' descriptors lead to", "read_descriptors", {
    ...quick,
    succeedsPlain: { because: "nothing of the corpus hands descriptors on" },
  }),
  process("environments of other processes", "process_environments", quick),
  process("command lines of other processes", "process_command_lines", quick),
  process("memory of other processes", "process_memory", quick),
  process("trace other processes", "process_trace", quick),
  process("take descriptors of other processes", "process_descriptors"),
  process("signal other processes", "process_signal", quick),
  process("change the priority of other processes", "process_stop"),
  process("enter namespaces of other processes", "process_namespaces", quick),
  process("unix sockets of the daemon and others", "unix_sockets", quick),
  process("the display of another browser", "display", quick),
  process("abstract sockets of others", "abstract_sockets", quick),
  process("ports of the host's loopback", "loopback_ports", quick),
  process("datagrams to the host", "loopback_datagrams"),
  process("raw sockets and the kernel's log", "raw_sockets", asRoot),
  process("the host's name", "host_name", {
    judge: (text) => (text.includes(`host: ${hostname()}\n`) ? `the host's name, ${hostname()}` : undefined),
  }),
  process("set the host's name", "set_host_name", asRoot),
  process("remount writable, as root of a nested namespace", "nested_remount", {
    leavesMarks: true,
    ...quick,
    succeedsPlain: { because: "mounts of another user namespace are locked" },
  }),
  process("unmount what covers, as root of a nested namespace", "nested_unmount", {
    leavesMarks: true,
    ...quick,
    succeedsPlain: true,
  }),
  process("new mounts of /proc and others, as root of a nested namespace", "nested_mounts", quick),
  process("chroot out, as root of a nested namespace", "nested_chroot", quick),
  process("pivot_root out, as root of a nested namespace", "nested_pivot", quick),
  process("devices", "devices", asRoot),
  process("make devices", "make_device", asRoot),
  process("settings of the kernel", "host_settings", asRoot),
  process("calls for root alone", "kernel_calls", asRoot),
  process("keys of the daemon's user", "keys", { succeedsPlain: true }),
  process("more open files than one of its processes may have", "many_files", { ...asRoot, ...quick }),
  process("shared memory of others", "shared_memory", quick),
  process("watch directories of others", "watch_files"),
  process("write wherever it may", "write_everywhere", { ...quick, leavesMarks: true }),
  process("see names of others' files", "see_everything", {
    judge: (text, { victims }) => (text.includes(victims.key) ? "names of others' directories" : undefined),
  }),
  process("cgroups", "cgroups", asRoot),
  process("cgroups, as root of a nested namespace", "nested_cgroups", {
    succeedsPlain: { because: "the cgroups of a namespace are its owner's" },
  }),
  process("mount, remount, unmount", "mount_directly", { ...asRoot, ...quick }),
  process("programs that run as their owner", "set_user_ids"),
];
