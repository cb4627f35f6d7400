import { Truncation } from "./truncation.js";
import { flagIn, numberIn, present, recordIn, type ProtocolRecord, textIn } from "./protocol-record.js";
import type { Reading } from "./reading.js";

/** `Page.frameNavigated`; `where` is the session and the target. It has no `nav_seq`, since it begins one. */
export function navigation(params: ProtocolRecord, where: ProtocolRecord): Reading {
  const truncation = new Truncation();
  const frame = recordIn(params, "frame");
  const data = present({
    ...where,
    url: truncation.url(textIn(frame, "unreachableUrl") ?? textIn(frame, "url")),
    frame_id: textIn(frame, "id"),
    parent_frame_id: textIn(frame, "parentId"),
    loader_id: textIn(frame, "loaderId"),
  });
  return { type: "page_navigation", category: "page", data, wasCut: truncation.wasCut, saysWhere: true };
}

/** `Target.attachedToTarget` of a page that was not open before. */
export function tabOpened(target: ProtocolRecord): Reading {
  const truncation = new Truncation();
  const data = present({
    target_id: textIn(target, "targetId"),
    target_type: "page",
    url: truncation.url(textIn(target, "url")),
    title: truncation.optional(textIn(target, "title"), 1024),
    opener_id: textIn(target, "openerId"),
  });
  return { type: "page_tab_opened", category: "page", data, wasCut: truncation.wasCut, saysWhere: true };
}

export type LoadStep = "page_dom_content_loaded" | "page_load";

/** `Page.domContentEventFired` and `Page.loadEventFired`. */
export const loadStep = (type: LoadStep, params: ProtocolRecord): Reading => ({
  type,
  category: "page",
  data: present({ cdp_timestamp: numberIn(params, "timestamp") }),
  wasCut: false,
});

/**
 * `PerformanceTimeline.timelineEventAdded`. Its times are in seconds, those that are told in milliseconds.
 */
export function timelineEvent(params: ProtocolRecord): Reading | undefined {
  const event = recordIn(params, "event");
  const common = { source_frame_id: textIn(event, "frameId"), time: inMs(event, "time") };
  if (textIn(event, "type") === "layout-shift") {
    const shift = recordIn(event, "layoutShiftDetails");
    const layout_shift_details = present({
      value: numberIn(shift, "value"),
      had_recent_input: flagIn(shift, "hadRecentInput"),
    });
    const data = present({ ...common, duration: numberIn(event, "duration") ?? 0, layout_shift_details });
    return { type: "page_layout_shift", category: "page", data, wasCut: false };
  }
  return textIn(event, "type") === "largest-contentful-paint" ? largestPaint(event, common) : undefined;
}

function largestPaint(event: ProtocolRecord, common: ProtocolRecord): Reading {
  const truncation = new Truncation();
  const paint = recordIn(event, "lcpDetails");
  const lcp_details = present({
    render_time: inMs(paint, "renderTime"),
    load_time: inMs(paint, "loadTime"),
    size: numberIn(paint, "size"),
    element_id: truncation.optional(textIn(paint, "elementId"), 256),
    url: truncation.url(textIn(paint, "url")),
    node_id: numberIn(paint, "nodeId"),
  });
  return {
    type: "page_lcp",
    category: "page",
    data: present({ ...common, lcp_details }),
    wasCut: truncation.wasCut,
  };
}

const inMs = (params: ProtocolRecord, key: string): number | undefined => {
  const seconds = numberIn(params, key);
  return seconds === undefined ? undefined : seconds * 1000;
};

/** Pages of Chromium itself are nobody's: nothing of them is told. */
export const isOwnPage = (url: string): boolean =>
  /^(?:chrome|chrome-untrusted|chrome-search|devtools):/i.test(url) && url !== "chrome://newtab/";
