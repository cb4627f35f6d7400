// chromium-bidi has no public way to its mapper but these files, so its version is pinned exactly.
import { BidiServer } from "chromium-bidi/out/Default/gen/src/bidiMapper/BidiServer.js";
import type { BidiTransport } from "chromium-bidi/out/Default/gen/src/bidiMapper/BidiTransport.js";
import { BidiParser } from "chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js";
import { MapperCdpConnection } from "chromium-bidi/out/Default/gen/src/cdp/CdpConnection.js";

/** A command of WebDriver BiDi whose frame was checked; its params are for the mapper to check. */
export interface BidiCommand {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly "goog:channel"?: string;
}

export interface MapperCallbacks {
  toClient(message: object): void;
  /** A command of CDP, as JSON. */
  toBrowser(command: string): void;
}

type Handler = Parameters<BidiTransport["setOnMessage"]>[0];

/** Translates WebDriver BiDi for one client: it is a client of the browser by CDP. */
export class Mapper {
  #onCommand: Handler = () => {};
  #onFrame: (message: string) => void = () => {};

  constructor(private readonly callbacks: MapperCallbacks) {}

  /** Resolves when commands may come. */
  async start(): Promise<void> {
    const connection = new MapperCdpConnection({
      setOnMessage: (handle) => (this.#onFrame = (message) => void handle(message)),
      sendMessage: (command) => this.callbacks.toBrowser(command),
      close: () => {},
    });
    const transport: BidiTransport = {
      setOnMessage: (handle) => (this.#onCommand = handle),
      sendMessage: (message) => this.callbacks.toClient(message),
      close: () => {},
    };
    // No page of the mapper's own is to be hidden, so none is named.
    const noTarget = "";
    await BidiServer.createAndStart(
      transport,
      connection,
      await connection.createBrowserSession(),
      noTarget,
      new BidiParser(),
    );
  }

  fromClient(command: BidiCommand): void {
    void this.#onCommand(command as Parameters<Handler>[0]);
  }

  /** A message of CDP, as JSON. */
  fromBrowser(message: string): void {
    this.#onFrame(message);
  }
}
