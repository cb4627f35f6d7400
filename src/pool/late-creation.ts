import { refusal, type Refusal } from "../base/errors.js";

export interface LatePorts<Asked extends readonly unknown[], Made> {
  /** Whether the project may still have what is made in it. */
  isActive(): Promise<boolean>;
  /** Takes back what was made, where it was. */
  undo(made: Made, ...asked: Asked): Promise<void>;
  /** Where either of these fails, the caller is answered with a fault and not told what was made. */
  lost?(made: Made): void;
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
    { isActive, undo, lost }: LatePorts<Asked, Exclude<Made, Refusal>>,
  ) =>
  async (...asked: Asked): Promise<Made | Refusal> => {
    const outcome = await create(...asked);
    if (outcome.kind === "refused") return outcome;
    const made = outcome as Exclude<Made, Refusal>;
    try {
      if (await isActive()) return made;
      await undo(made, ...asked);
    } catch (error) {
      lost?.(made);
      throw error;
    }
    return refusal("project_not_found");
  };
