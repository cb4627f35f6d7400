import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type EgressBed, openEgress, rulesFor } from "./egress-bed.js";
import { openOrigin, openRawOrigin, type TestServer } from "./egress-origin.js";

/** An origin and a proxy that leads to it alone; both close with the test. */
export interface Site {
  readonly bed: EgressBed;
  readonly origin: TestServer;
  readonly url: string;
}

async function siteOn(origin: TestServer): Promise<Site> {
  onTestFinished(() => origin.close());
  const bed = await openEgress(rulesFor([`127.0.0.1:${origin.port}`]));
  onTestFinished(() => bed.egress.close());
  return { bed, origin, url: `http://127.0.0.1:${origin.port}` };
}

/** The origin speaks HTTP. */
export const site = async (listener: RequestListener): Promise<Site> =>
  await siteOn(await openOrigin(listener));

/** The origin sends what it is told to, HTTP or not. */
export const rawSite = async (answer: (socket: Socket, text: string) => void): Promise<Site> =>
  await siteOn(
    await openRawOrigin(
      (socket) => void socket.on("data", (data) => answer(socket, data.toString("latin1"))),
    ),
  );
