import { refusal, type Refusal } from "../base/errors.js";

interface LatePorts<Asked extends readonly unknown[], Made> {
  /** Whether the project may still have what is made in it. */
  isActive(): Promise<boolean>;
  /** Takes back what was made, where it was. */
  undo(made: Made, ...asked: Asked): Promise<void>;
}

/**
 * Takes back what a request has made in a project that was archived or deleted after the request was let in:
 * nobody could end or delete it there. Who closes a project looks afterwards whether it is empty, and who
 * makes something looks afterwards whether the project is closed, so that at least one of the two sees the
 * other.
 */
export const undoneWhereLate =
  <Asked extends readonly unknown[], Made extends { readonly kind: string }>(
    create: (...asked: Asked) => Promise<Made | Refusal>,
    { isActive, undo }: LatePorts<Asked, Exclude<Made, Refusal>>,
  ) =>
  async (...asked: Asked): Promise<Made | Refusal> => {
    const made = await create(...asked);
    if (made.kind === "refused" || (await isActive())) return made;
    await undo(made as Exclude<Made, Refusal>, ...asked);
    return refusal("project_not_found");
  };
