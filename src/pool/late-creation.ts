import { refusal, type Refusal } from "../base/errors.js";
import type { Caller } from "../spec/paging.js";

interface LatePorts<Made> {
  /** Whether the project may still have what is made in it. */
  isActive(): Promise<boolean>;
  /** Takes back what was made, where it was. */
  undo(made: Made, caller: Caller): Promise<void>;
}

/**
 * Takes back what a request has made in a project that was archived or deleted after the request was let in:
 * nobody could end it there. Who closes a project looks afterwards whether something runs there, and who makes
 * something looks afterwards whether the project is closed, so that at least one of the two sees the other.
 */
export const undoneWhereLate =
  <Body, Made extends { readonly kind: string }>(
    create: (body: Body, caller: Caller) => Promise<Made | Refusal>,
    { isActive, undo }: LatePorts<Exclude<Made, Refusal>>,
  ) =>
  async (body: Body, caller: Caller): Promise<Made | Refusal> => {
    const made = await create(body, caller);
    if (made.kind === "refused" || (await isActive())) return made;
    await undo(made as Exclude<Made, Refusal>, caller);
    return refusal("project_not_found");
  };
