import type { Attempt, Need, Work } from "./attempt.js";

interface Form {
  readonly what: string;
  readonly host: (work: Work) => string;
  readonly needs?: readonly Need[];
}

const fixed = (host: string): Pick<Form, "what" | "host"> => ({ what: host, host: () => host });
const ipv6 = "fd77::1";

/** What can be written for a host that is closed. */
const forms: readonly Form[] = [
  ...[
    "127.0.0.1",
    "127.0.0.2",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "foo.localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
  ].map(fixed),
  { what: "127.0.0.1 as a decimal number", host: () => "2130706433" },
  { what: "127.0.0.1 in octal", host: () => "0177.0.0.1" },
  { what: "127.0.0.1 in hexadecimal", host: () => "0x7f.0x0.0x0.0x1" },
  { what: "127.0.0.1 in short", host: () => "127.1" },
  { what: "127.0.0.1 in full-width digits", host: () => "１２７。0.0.1" },
  { what: "127.0.0.1 percent-encoded", host: () => "%31%32%37.0.0.1" },
  {
    what: "127.0.0.1 behind an allowed name as the user",
    host: ({ site }) => `${site.host}:${site.port}@127.0.0.1`,
  },
  { what: "the node's own address", host: ({ world }) => world.node ?? "", needs: ["node"] },
  { what: "the node's own IPv6 address", host: ({ world }) => `[${world.node6 ?? ipv6}]`, needs: ["node6"] },
  { what: "169.254.169.254", host: ({ world }) => world.metadata ?? "", needs: ["metadata"] },
  { what: "169.254.169.254 as a decimal number", host: () => "2852039166", needs: ["metadata"] },
  {
    what: "[::ffff:169.254.169.254]",
    host: ({ world }) => `[::ffff:${world.metadata ?? ""}]`,
    needs: ["metadata"],
  },
  { what: "a public address that is not allowed", host: ({ world }) => world.denied },
  { what: "a name that is not allowed", host: (work) => work.name("outside"), needs: ["names"] },
  { what: "a name of the local network", host: (work) => work.name("local"), needs: ["names"] },
  {
    what: "an allowed name that resolves to a private address",
    host: (work) => work.name("private"),
    needs: ["names", "node"],
  },
  {
    what: "an allowed name that resolves to loopback",
    host: (work) => work.name("loopback"),
    needs: ["names"],
  },
  {
    what: "an allowed name with a trailing dot that resolves to loopback",
    host: (work) => `${work.name("loopback")}.`,
    needs: ["names"],
  },
  {
    what: "an allowed name that resolves to a public and a private address",
    host: (work) => work.name("mixed"),
    needs: ["names", "node"],
  },
];

const visited = ({ what, host, needs = [] }: Form): Attempt => ({
  name: `address: ${what}`,
  needs,
  reachesPlain: true,
  async run(work) {
    const page = await work.open();
    await page.goto(work.url({ host: host(work) }));
  },
});

/** The second visit is from a context of its own, which remembers no address of the first. */
const rebound: Attempt = {
  name: "address: an allowed name that is bound anew, to loopback",
  needs: ["names"],
  reachesPlain: true,
  async run(work) {
    const url = work.url({ host: work.name("rebinding") });
    await work.open(url);
    const { result } = await work.cdp.send("Target.createBrowserContext");
    await work.open(url, String(result?.browserContextId));
  },
};

const fetched = ({ what, host, needs = [] }: Form): Attempt => ({
  name: `address of a request: ${what}`,
  needs,
  reachesPlain: true,
  async run(work) {
    const page = await work.open();
    const [url, socket] = [work.url({ host: host(work) }), work.url({ host: host(work), scheme: "ws" })];
    await page.evaluate(`await soon(fetch(${JSON.stringify(url)}, { mode: "no-cors" })).catch(() => {});
      const socket = new WebSocket(${JSON.stringify(socket)}); await soon(new Promise((resolve) => (socket.onclose = resolve)))`);
  },
});

const port = (
  what: string,
  url: (work: Work, own: number) => string,
  needs: readonly Need[] = [],
): Attempt => ({
  name: `port of Remuda itself, loopback and node opened: ${what}`,
  needs: ["own-ports", ...needs],
  reachesPlain: true,
  async run(work) {
    const page = await work.open();
    for (const own of work.ownPorts) {
      await page.goto(url(work, own));
      const said = String(await page.evaluate("return document.body?.innerText ?? ''"));
      // Whatever is not the refusal of the egress, or of Chromium, is an answer of Remuda. A port may have
      // been closed since it was listed: nobody answers there.
      if (!/egress_denied|could not be reached: ECONNREFUSED|ERR_/.test(said))
        work.saw(`${own}: ${said.slice(0, 60)}`);
    }
  },
});

const ownPorts: readonly Attempt[] = [
  ...["127.0.0.1", "127.0.0.2", "localhost", "[::1]", "[::ffff:127.0.0.1]"].map((host) =>
    port(host, (work, own) => `http://${host}:${own}/${work.nonce}`),
  ),
  port("the node's own address", (work, own) => `http://${work.world.node}:${own}/${work.nonce}`, ["node"]),
];

export const addresses: readonly Attempt[] = [
  ...forms.map(visited),
  rebound,
  ...forms.map(fetched),
  ...ownPorts,
];
