import { Server } from "proxy-chain";

// The library's plain server, without hooks, a program of its own.
const server = new Server({ port: 0, host: "127.0.0.1", verbose: false });
await server.listen();
process.once("SIGTERM", () => void server.close(true).then(() => process.exit()));
console.log(`listening http://127.0.0.1:${server.port}`);
