import type { PageFill } from "../../spec/page-fill.js";
import { isAllowedOrigin } from "../../spec/page-fill.js";
import { FillRefused, FillStopped } from "./calls.js";
import type { SearchedFrame } from "./frames.js";

/** An element that was found for a field, and that alone is written into whatever matches later. */
export interface PinnedTarget {
  readonly frame: SearchedFrame;
  /** Its number in that frame. */
  readonly element: number;
  readonly isSelect: boolean;
}

/** Throws where a selector is none, or a frame may not have the values. */
export function refuseFrames(frames: readonly SearchedFrame[], { allowed_origins: allowed }: PageFill): void {
  if (frames.some(({ found }) => found.some(({ isInvalid }) => isInvalid)))
    throw new FillRefused("invalid_selector");
  if (allowed === undefined) return;
  const written = frames.filter(({ found }, at) => at === 0 || found.some(({ matches }) => matches > 0));
  if (written.some(({ origin }) => !isAllowedOrigin(origin, allowed)))
    throw new FillRefused("destination_denied");
}

/**
 * The one element of all frames that a field may be written into. Throws where there is none, more than one,
 * or one that is another field's.
 */
export function pinTarget(
  frames: readonly SearchedFrame[],
  index: number,
  taken: readonly PinnedTarget[],
): PinnedTarget {
  const matching = frames.filter(({ found }) => (found[index]?.matches ?? 0) > 0);
  const [frame] = matching;
  const found = frame?.found[index];
  if (!frame || !found) throw new FillStopped("element_not_found");
  if (matching.length > 1 || found.matches > 1) throw new FillStopped("ambiguous_selector");
  if (found.editable === 0) throw new FillStopped("element_not_editable");
  const { element, isSelect = false } = found;
  const isTaken = taken.some((other) => other.frame === frame && other.element === element);
  if (element === undefined || isTaken) throw new FillStopped("ambiguous_selector");
  return { frame, element, isSelect };
}
