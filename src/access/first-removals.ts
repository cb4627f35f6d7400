import { createHash } from "node:crypto";
import { type Principal, projectOfRequest, principalKey } from "./principal.js";

/** Kinds of things that are deleted by a name, which another may bear afterwards. */
export type NamedKind =
  | "pools"
  | "browsers"
  | "extensions"
  | "profiles"
  | "otlpDestinations"
  | "vaults"
  | "vaultItems"
  | "projects";

/** A request to delete something. */
export interface Removal {
  readonly kind: NamedKind;
  /** An id or a name; of an item of a vault, `itemRef` of its vault and its key. */
  readonly ref: string;
  readonly principal: Principal;
  /** Whether the request says that it repeats an earlier one. */
  readonly isRepeat: boolean;
}

/** What names stood for when deleting it was asked for first, for as long as that may be repeated. */
export interface RemovalNotes {
  note(about: string, id: string): Promise<void>;
  find(about: string): Promise<string | undefined>;
}

/** A vault is named without a slash, so that the first one ends it. */
export const itemRef = (vault: string, key: string): string => `${vault}/${key}`;

interface FirstRemovalPorts {
  readonly notes: RemovalNotes;
  /** The id of what a reference means now. */
  findId(removal: Removal): Promise<string | undefined>;
}

/**
 * Finds what a deletion by name means: what the name stood for when its caller asked first. That is noted
 * before anything is deleted, so that the repeat of a request whose reply was lost never deletes what has
 * come to bear the name meanwhile. Ids are never given twice.
 */
export const makeFindRemoved =
  ({ notes, findId }: FirstRemovalPorts) =>
  async (removal: Removal): Promise<string> => {
    const about = aboutOf(removal);
    const first = removal.isRepeat ? await notes.find(about) : undefined;
    if (first !== undefined) return first;
    const id = await findId(removal);
    if (id === undefined || id === removal.ref) return removal.ref;
    await notes.note(about, id);
    return id;
  };

/**
 * Each caller has its own: nobody's deletion says anything of another's. Names are kept by their digest only.
 */
function aboutOf({ kind, ref, principal }: Removal): string {
  const project = kind === "projects" ? "" : projectOfRequest(principal);
  return createHash("sha256")
    .update([kind, project, principalKey(principal), ref].join("\n"))
    .digest("base64url");
}
