// A web server on a thread of its own, which tells when each request came: no test's work delays its clock.
import { createServer } from "node:http";
import { parentPort } from "node:worker_threads";

const server = createServer((request, response) => {
  parentPort.postMessage({ path: request.url, at: performance.now() });
  response.end("here");
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => parentPort.postMessage({ port: server.address().port }));
parentPort.once("message", () => {
  server.closeAllConnections();
  server.close(() => parentPort.close());
});
