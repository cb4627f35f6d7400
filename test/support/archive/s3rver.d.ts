declare module "s3rver" {
  import type { IncomingMessage, Server, ServerResponse } from "node:http";
  import type { AddressInfo } from "node:net";

  interface Exchange {
    readonly req: IncomingMessage;
    readonly res: ServerResponse;
    readonly method: string;
    readonly path: string;
    readonly query: Readonly<Record<string, string>>;
    readonly headers: Readonly<Record<string, string | undefined>>;
    status: number;
    type: string;
    body: unknown;
  }

  export default class S3rver {
    static readonly defaultOptions: object;
    constructor(options: {
      readonly address: string;
      readonly port: number;
      readonly silent: boolean;
      readonly directory: string;
      readonly vhostBuckets: boolean;
      readonly configureBuckets: readonly { readonly name: string }[];
    });
    readonly middleware: ((exchange: Exchange, next: () => Promise<void>) => Promise<void>)[];
    readonly httpServer: Server;
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  }
}
