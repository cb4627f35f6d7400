// Stands for whatever else runs beside a daemon on its machine: has words in its environment and on its
// command line, answers with words on sockets of every kind, and says when it is signalled. Says where it
// listens as one line of JSON. Arguments: path of its socket, name of its abstract one, words. Environment:
// PROVE_WORDS.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";

const [path, abstract, argument] = process.argv.slice(2);
const words = argument.replace(/-argv$/, "");
const answer = (text) => (socket) => {
  // A peer that has gone is no fault of ours.
  socket.on("error", () => {});
  socket.end(text);
};
const listen = (server, ...where) =>
  new Promise((resolve, reject) => server.once("error", reject).listen(...where, () => resolve(server)));

await listen(createServer(answer(`${words}-unix`)), path);
await listen(createServer(answer(`${words}-abstract`)), `\0${abstract}`);
const tcp = await listen(createServer(answer(`${words}-tcp`)), 0, "127.0.0.1");
const udp = createSocket({ type: "udp4", reuseAddr: true });
udp.on("message", (_, from) => udp.send(`${words}-udp`, from.port, from.address));
await new Promise((resolve) => udp.bind(0, "0.0.0.0", resolve));
process.on("SIGUSR2", () => process.stdout.write("signalled\n"));
process.stdout.write(`${JSON.stringify({ tcp: tcp.address().port, udp: udp.address().port })}\n`);
