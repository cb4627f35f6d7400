import { isRecord } from "../../base/is-record.js";
import { Cuts } from "./cuts.js";
import { numberIn, present, recordIn, type Said, textIn } from "./said.js";
import type { Scroll } from "./scrolling.js";
import type { Reading } from "./reading.js";

/** What the script in a page has told (interaction-script.ts). */
type Interaction =
  | { readonly kind: "told"; readonly told: Reading }
  | { readonly kind: "scrolled"; readonly scroll: Scroll };

const longestPayloadBytes = 4096;

/**
 * `Runtime.bindingCalled`. Undefined where it has another form: only the holder's own client can write it.
 */
export function interactionOf(params: Said): Interaction | undefined {
  const payload = textIn(params, "payload") ?? "";
  if (payload.length > longestPayloadBytes) return undefined;
  const said = parsed(payload);
  const type = textIn(said, "type");
  if (type === "click") return { kind: "told", told: told("interaction_click", clickFields(said)) };
  if (type === "key") return { kind: "told", told: told("interaction_key", elementFields(said)) };
  if (type !== "scroll") return undefined;
  const scroll = {
    selector: textIn(said, "selector") ?? "",
    from: placeIn(said, "begin"),
    to: placeIn(said, "end"),
  };
  return { kind: "scrolled", scroll };
}

export const scrollSettled = ({ selector, from, to }: Scroll): Reading =>
  told("interaction_scroll_settled", {
    from_x: from.x,
    from_y: from.y,
    to_x: to.x,
    to_y: to.y,
    target_selector: new Cuts().text(selector, 1024),
  });

const told = (type: string, data: Said): Reading => ({ type, category: "interaction", data, wasCut: false });

const elementFields = (said: Said): Said => {
  const cuts = new Cuts();
  return present({
    key: cuts.optional(textIn(said, "key"), 32),
    selector: cuts.optional(textIn(said, "selector"), 1024),
    tag: cuts.optional(textIn(said, "tag"), 64),
  });
};

const clickFields = (said: Said): Said =>
  present({
    ...elementFields(said),
    key: undefined,
    x: numberIn(said, "x"),
    y: numberIn(said, "y"),
    text: new Cuts().optional(textIn(said, "text"), 400),
  });

const placeIn = (said: Said, key: string): { x: number; y: number } => {
  const place = recordIn(said, key);
  return { x: numberIn(place, "x") ?? 0, y: numberIn(place, "y") ?? 0 };
};

function parsed(text: string): Said {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
