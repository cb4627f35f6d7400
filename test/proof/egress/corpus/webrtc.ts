import { type Attempt, inPage, type Work } from "./attempt.js";

/** Gathers candidates with the given servers until there are no more. */
const gather = (servers: string): string => `
  const peer = new RTCPeerConnection({ iceServers: [{ urls: ${servers}, username: "held", credential: "held" }] });
  peer.createDataChannel("held");
  const done = new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve()));
  await peer.setLocalDescription();
  await soon(done, 4000);`;

const at = (work: Work, host: string): string => `${host}:${work.port}`;
const server = (name: string, url: (work: Work) => string, other: Partial<Attempt> = {}): Attempt =>
  inPage(name, (work) => gather(JSON.stringify(url(work))), other);

/** Two ends in one page; the candidate of the other is our port. */
const candidate = (what: string, host: (work: Work) => string, other: Partial<Attempt> = {}): Attempt =>
  inPage(
    `WebRTC: a peer's candidate, ${what}`,
    (work) => `
    const [peer, other] = [new RTCPeerConnection(), new RTCPeerConnection()];
    peer.createDataChannel("held");
    await peer.setLocalDescription();
    await other.setRemoteDescription(peer.localDescription);
    await other.setLocalDescription();
    await peer.setRemoteDescription(other.localDescription);
    const tcp = ${JSON.stringify(what === "tcp" ? " tcptype passive" : "")};
    await peer.addIceCandidate({ candidate: "candidate:1 1 ${what.slice(0, 3)} 2122260223 ${host(work)} ${work.port} typ host" + tcp, sdpMid: "0", sdpMLineIndex: 0 });
    await soon(new Promise(() => {}), 1500);`,
    other,
  );

export const webrtc: readonly Attempt[] = [
  server("WebRTC: STUN over UDP", (work) => `stun:${at(work, work.world.denied)}`),
  server("WebRTC: STUN over UDP, loopback", (work) => `stun:${at(work, "127.0.0.1")}`),
  server("WebRTC: STUN by name", (work) => `stun:${at(work, work.name("outside"))}`, { needs: ["names"] }),
  server("WebRTC: STUN over IPv6", (work) => `stun:[${work.world.node6}]:${work.port}`, { needs: ["node6"] }),
  server("WebRTC: TURN over UDP", (work) => `turn:${at(work, work.world.denied)}?transport=udp`),
  server("WebRTC: TURN over TCP", (work) => `turn:${at(work, work.world.denied)}?transport=tcp`),
  server("WebRTC: TURN over TLS", (work) => `turns:${at(work, work.world.denied)}?transport=tcp`),
  server("WebRTC: TURN over TCP, by name", (work) => `turn:${at(work, work.name("outside"))}?transport=tcp`, {
    needs: ["names"],
  }),
  server("WebRTC: TURN over TCP, loopback", (work) => `turn:${at(work, "127.0.0.1")}?transport=tcp`),
  candidate("udp", ({ world }) => world.denied),
  candidate("tcp", ({ world }) => world.denied),
  candidate("udp by name", (work) => work.name("outside"), { needs: ["names"] }),
  candidate("udp by name of the local network", (work) => work.name("local"), { needs: ["names"] }),
  inPage(
    "WebTransport",
    `const transport = new WebTransport(url.replace("http", "https")); await soon(transport.ready, 2000).catch(() => {})`,
  ),
  inPage("WebTransport in a worker", (work) => {
    const body = `new WebTransport(${JSON.stringify(work.url({ scheme: "https" }))}).ready.catch(() => {}).then(() => postMessage(1))`;
    return `const worker = new Worker(${JSON.stringify(work.serve("/worker.js", { headers: { "content-type": "text/javascript" }, body }))}); await soon(new Promise((resolve) => (worker.onmessage = resolve)), 2000)`;
  }),
  {
    name: "QUIC announced by an allowed host",
    reachesPlain: { because: "Chromium heeds Alt-Svc over verified TLS alone" },
    async run(work) {
      const page = await work.open(
        work.serve("/announcing", {
          headers: { "alt-svc": `h3="${work.world.denied}:${work.port}"; ma=3600` },
        }),
      );
      await page.goto(work.serve("/announced", {}));
    },
  },
];
