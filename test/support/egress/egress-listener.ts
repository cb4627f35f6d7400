import { createSocket } from "node:dgram";

/** Hears what is asked of everybody in the network by multicast DNS. */
export interface MulticastListener {
  /** Texts of the datagrams that came, in which names can be looked for. */
  readonly heard: readonly string[];
  close(): Promise<void>;
}

/** Listens on the interface that has this address. */
export async function openMulticastListener(address: string): Promise<MulticastListener> {
  const heard: string[] = [];
  // Chromium listens on the same port.
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  socket.on("message", (datagram) => heard.push(datagram.toString("latin1")));
  await new Promise<void>((resolve, reject) => socket.once("error", reject).bind(5353, resolve));
  socket.addMembership("224.0.0.251", address);
  return { heard, close: () => new Promise((resolve) => void socket.close(resolve)) };
}
