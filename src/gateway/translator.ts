import type { Frame } from "../browser/cdp/frame.js";

/** What a translator is between. */
export interface TranslatorCallbacks {
  toClient(message: Frame): void;
  toBrowser(command: Buffer): void;
  /** The client has to go. */
  over(code: number, reason: string): void;
  /** Nothing more may be read of the client until `proceed`. */
  wait(): void;
  proceed(): void;
}

/** Stands between a client and the bridge where the client speaks another protocol than CDP. */
export interface Translator {
  start(): void;
  fromClient(message: Buffer): void;
  fromBrowser(message: Frame | string): void;
  /** Nothing more may come of it until `proceed`. */
  wait(): void;
  proceed(): void;
  /** From here on nothing comes of it. */
  close(): void;
}

export type OpenTranslator = (callbacks: TranslatorCallbacks) => Translator;
