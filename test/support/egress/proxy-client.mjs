// As many clients of a browser's proxy as hosts are named, each asking for its host over and over, until this
// process is ended: every second one plainly, the others through tunnels. Arguments: the proxy's address, its
// port, a path, the hosts. Run as a text (`node -e`), since a browser's uid may not read the checkout.
import { once } from "node:events";
import { connect } from "node:net";

const [address, port, path, ...hosts] = process.argv.slice(1);

/** One connection to the proxy, used until it ends. */
async function useConnection({ host, byTunnel }) {
  const socket = connect(Number(port), address);
  const ended = once(socket, "close").catch(() => {});
  socket.on("error", () => {});
  const exchange = async (text) => {
    socket.write(text);
    const [answer] = await Promise.race([once(socket, "data").catch(() => [""]), ended.then(() => [""])]);
    return String(answer);
  };
  const connected = byTunnel ? await exchange(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`) : "200";
  if (!connected.includes("200")) socket.destroy();
  const line = byTunnel ? path : `http://${host}${path}`;
  while (!socket.destroyed) {
    const answer = await exchange(`GET ${line} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    if (!answer.includes("200")) socket.destroy();
  }
  await ended;
}

const ask = async (client) => {
  while (process.connected) await useConnection(client);
};
process.once("disconnect", () => process.exit());
await Promise.all(hosts.map((host, at) => ask({ host, byTunnel: at % 2 === 0 })));
