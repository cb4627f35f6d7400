import { createServer, type Socket } from "node:net";
import { bodyBytes, bodyPath, ending } from "./exchange.js";

// The origin, a program of its own: answers without parsing, so that the proxies are what is measured.
const small = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${ending.length}\r\n\r\n${ending}`,
);
const piece = Buffer.alloc(256 * 1024, 120);

function sendBody(socket: Socket): void {
  let left = bodyBytes;
  const more = (): void => {
    while (left > 0) {
      left -= piece.length;
      if (!socket.write(piece)) return;
    }
    socket.off("drain", more).end();
  };
  socket
    .on("drain", more)
    .write(`HTTP/1.1 200 OK\r\nContent-Length: ${bodyBytes}\r\nConnection: close\r\n\r\n`);
  more();
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    if (data.includes(bodyPath)) sendBody(socket);
    else socket.write(small);
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object")
    console.log(`listening http://127.0.0.1:${address.port}`);
});
