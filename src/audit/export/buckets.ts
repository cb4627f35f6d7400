import type { Destination } from "./destination.js";

/** Why nothing could be put: a sentence of a fixed set, which callers are shown. */
export class ExportFault extends Error {
  constructor(
    readonly stage: "assume_role" | "put_object",
    message: string,
  ) {
    super(message);
    this.name = "ExportFault";
  }
}

/** What a session may do in a destination's bucket, with the objects whose names start so. */
export interface Access {
  readonly start: string;
  readonly mayRemove?: boolean;
  /** Ends what is under way. */
  readonly stopping?: AbortSignal;
}

/** A destination's bucket, for as long as a role's session lasts (15 minutes). */
export interface OpenBucket {
  /** Resolves once the object is there whole; one of that name is replaced. Throws `ExportFault`. */
  put(key: string, bytes: Buffer): Promise<void>;
  remove(key: string): Promise<void>;
  close(): void;
}

/** The way to the buckets of others. */
export interface Buckets {
  /** As the destination's role, where roles are assumed. Throws `ExportFault`. */
  open(destination: Destination, access: Access): Promise<OpenBucket>;
  /**
   * Whether the role lets in who does not know the external id. Throws `ExportFault` where that is not told.
   */
  isOpenToAll(destination: Destination): Promise<boolean>;
}

/** The name of an object within a destination's prefix. */
export const keyIn = ({ prefix }: Pick<Destination, "prefix">, name: string): string =>
  prefix === "" ? name : `${prefix}/${name}`;
