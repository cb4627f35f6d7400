import { isRecord } from "../../base/is-record.js";
import { Truncation } from "./truncation.js";
import { flagIn, numberIn, present, recordIn, type ProtocolRecord, textIn } from "./protocol-record.js";
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
export function interactionOf(params: ProtocolRecord): Interaction | undefined {
  const payload = textIn(params, "payload") ?? "";
  if (payload.length > longestPayloadBytes) return undefined;
  const input = parsed(payload);
  const type = textIn(input, "type");
  const truncation = truncationOf(flagIn(input, "isCut") === true);
  if (type === "click")
    return { kind: "told", told: told("interaction_click", clickFields(input, truncation), truncation) };
  if (type === "key")
    return { kind: "told", told: told("interaction_key", elementFields(input, truncation), truncation) };
  if (type !== "scroll") return undefined;
  const scroll = {
    selector: textIn(input, "selector") ?? "",
    from: placeIn(input, "begin"),
    to: placeIn(input, "end"),
    isCut: truncation.wasCut,
  };
  return { kind: "scrolled", scroll };
}

export function scrollSettled({ selector, from, to, isCut = false }: Scroll): Reading {
  const truncation = truncationOf(isCut);
  const target_selector = truncation.text(selector, 1024);
  const data = { from_x: from.x, from_y: from.y, to_x: to.x, to_y: to.y, target_selector };
  return told("interaction_scroll_settled", data, truncation);
}

function truncationOf(wasCut: boolean): Truncation {
  const truncation = new Truncation();
  if (wasCut) truncation.add();
  return truncation;
}

const told = (type: string, data: ProtocolRecord, { wasCut }: Truncation): Reading => ({
  type,
  category: "interaction",
  data,
  wasCut,
});

const elementFields = (input: ProtocolRecord, truncation: Truncation): ProtocolRecord =>
  present({
    key: truncation.optional(textIn(input, "key"), 32),
    selector: truncation.optional(textIn(input, "selector"), 1024),
    tag: truncation.optional(textIn(input, "tag"), 64),
  });

const clickFields = (input: ProtocolRecord, truncation: Truncation): ProtocolRecord =>
  present({
    ...elementFields(input, truncation),
    key: undefined,
    x: numberIn(input, "x"),
    y: numberIn(input, "y"),
    text: truncation.optional(textIn(input, "text"), 400),
  });

const placeIn = (input: ProtocolRecord, key: string): { x: number; y: number } => {
  const place = recordIn(input, key);
  return { x: numberIn(place, "x") ?? 0, y: numberIn(place, "y") ?? 0 };
};

function parsed(text: string): ProtocolRecord {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
