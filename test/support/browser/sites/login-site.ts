import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface LoginSite {
  readonly origin: string;
  /** Answers nobody from then on, though its port stays taken. */
  goOffline(): void;
  close(): Promise<void>;
}

/** Answers from its cache when the site does not. */
const worker = `
oninstall = (event) => event.waitUntil(caches.open("shell").then((cache) => cache.add("/offline")));
onactivate = (event) => event.waitUntil(clients.claim());
onfetch = (event) => event.respondWith(fetch(event.request).catch(() => caches.match("/offline")));
`;

const isLoggedIn = ({ headers }: IncomingMessage): boolean => /\bsession=secret\b/.test(headers.cookie ?? "");

function answer(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("content-type", "text/html");
  if (request.url === "/login-for-now")
    response.setHeader("set-cookie", "session=secret; HttpOnly; SameSite=Lax; Path=/");
  if (request.url === "/login")
    response.setHeader("set-cookie", "session=secret; Max-Age=100000; HttpOnly; Path=/");
  if (request.url === "/worker.js") response.setHeader("content-type", "text/javascript").end(worker);
  else if (request.url === "/offline") response.end("<!doctype html><title>from the cache</title>");
  else response.end(`<!doctype html><title>${isLoggedIn(request) ? "welcome back" : "who are you"}</title>`);
}

/**
 * A site that one logs in to by opening `/login`, or `/login-for-now` for a cookie without an end, that says
 * in its title whether one is, and works offline after its worker came.
 */
export async function openLoginSite(): Promise<LoginSite> {
  let isOnline = true;
  const server = createServer((request, response) =>
    isOnline ? answer(request, response) : request.socket.destroy(),
  );
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    goOffline: () => void (isOnline = false),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** What one has there besides the login: in localStorage, in a database, and a worker with a cache. */
export const moveIn = `(async () => {
  localStorage.setItem("held", "stored");
  const opened = indexedDB.open("held", 1);
  await new Promise((resolve) => {
    opened.onupgradeneeded = () => opened.result.createObjectStore("store").put("kept", "held");
    opened.onsuccess = resolve;
  });
  opened.result.close();
  await navigator.serviceWorker.register("/worker.js");
  await navigator.serviceWorker.ready;
})()`;

/** \`title localStorage database\`, as they are found. */
export const lookAround = `(async () => {
  const opened = indexedDB.open("held", 1);
  const held = await new Promise((resolve) => {
    opened.onupgradeneeded = () => opened.result.createObjectStore("store");
    opened.onsuccess = () => {
      const asked = opened.result.transaction("store").objectStore("store").get("held");
      asked.onsuccess = () => resolve(asked.result);
    };
  });
  opened.result.close();
  return [document.title, localStorage.getItem("held"), held].join(", ");
})()`;
