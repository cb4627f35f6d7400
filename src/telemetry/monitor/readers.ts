import { type Frame, frameHeadOf, wholeOf } from "../../browser/cdp/frame.js";
import { consoleCall, exception } from "./console-events.js";
import { interactionOf } from "./interaction-events.js";
import { bodyOf, type FinishedResponse } from "./network-events.js";
import { type LoadStep, navigation, timelineEvent } from "./page-events.js";
import { flagIn, recordIn, type ProtocolRecord, textIn } from "./protocol-record.js";
import type { WatchedTarget } from "./watched-target.js";
import type { EventCategory } from "../event.js";

interface EventReader {
  /** The category whose allowance it takes from. */
  readonly kind: EventCategory;
  /** Longer ones are left out; 256 KiB where it says nothing. */
  readonly longestBytes?: number;
  read(target: WatchedTarget, params: ProtocolRecord, event: string): void;
  /** Carries what follows from a message that was left out. */
  lost?(target: WatchedTarget, frame: Frame): void;
}

/** A page with a long address is a page. */
export const longestAddressBytes = 2 * 1024 * 1024;
/** A page has come back from the back/forward cache, as `Page.frameNavigated` says it. */
const restored = "BackForwardCacheRestore";
/** How Chromium 156 begins; frames within others name these at once. */
const navigatedFrame = /"frame":\{"id":"([^"]*)",("parentId")?/;

/** Nothing that is told afterwards may pass for the document before. */
function navigatedUnseen(target: WatchedTarget, frame: Frame): void {
  const head = frameHeadOf(frame).toString("latin1", 0, 1024);
  const [, id, parentId] = navigatedFrame.exec(head) ?? [];
  if (target.isTop({ id, parentId })) target.navigated({});
}

/** As Chromium 156 writes it; within a text its quotes have a backslash before them. */
const noBrowserHandler = '"hasBrowserHandler":false';

const requestsLost = (target: WatchedTarget): void => target.settling?.requestsLost();

/** The bodies of one target that are asked for at once. */
const mostBodies = 4;
const asked = new WeakMap<WatchedTarget, number>();

/**
 * Tells a response with the beginning of its body, where that is a text; one that is not asked for was cut.
 */
async function tellResponse(target: WatchedTarget, response: FinishedResponse, event: string): Promise<void> {
  const { id, data, wasCut, bodyBytes } = response;
  const open = asked.get(target) ?? 0;
  const isAsked = bodyBytes > 0 && open < mostBodies;
  const isLeftOut = bodyBytes > 0 && !isAsked;
  if (isAsked) asked.set(target, open + 1);
  const reply = isAsked
    ? await target.ask("Network.getResponseBody", { requestId: id }).catch(() => ({}))
    : {};
  if (isAsked) asked.set(target, (asked.get(target) ?? 1) - 1);
  const { body, wasCut: isBodyCut } = bodyOf(reply, bodyBytes);
  const told = body === undefined || body === "" ? data : { ...data, body };
  target.tell(
    { type: "network_response", category: "network", data: told, wasCut: wasCut || isBodyCut || isLeftOut },
    event,
  );
}

/** Told again where a page was loaded before it was seen. */
const loadSteps: Readonly<Record<string, LoadStep>> = {
  DOMContentLoaded: "page_dom_content_loaded",
  load: "page_load",
};

/** What is read of a browser's messages; all others are passed over by their name. */
export const readers: ReadonlyMap<string, EventReader> = new Map<string, EventReader>([
  [
    "Runtime.consoleAPICalled",
    { kind: "console", read: (target, params, event) => target.tell(consoleCall(params), event) },
  ],
  [
    "Runtime.exceptionThrown",
    { kind: "console", read: (target, params, event) => target.tell(exception(params), event) },
  ],
  [
    "Runtime.bindingCalled",
    {
      kind: "interaction",
      read(target, params, event) {
        const interaction = interactionOf(params);
        if (interaction?.kind === "told") target.tell(interaction.told, event);
        if (interaction?.kind === "scrolled") target.scrolling.scrolled(interaction.scroll);
      },
    },
  ],
  [
    "Network.requestWillBeSent",
    {
      kind: "network",
      lost: requestsLost,
      read(target, params, event) {
        target.tell(target.requests.sent(params, target.page.navSeq), event);
        target.settling?.requested({
          id: textIn(params, "requestId") ?? "",
          loader: textIn(params, "loaderId"),
          session: target.session,
        });
      },
    },
  ],
  [
    "Network.responseReceived",
    {
      kind: "network",
      lost: requestsLost,
      read(target, params, event) {
        const proxyError = target.requests.responded(params);
        if (proxyError) target.tell(proxyError, event);
      },
    },
  ],
  [
    "Network.loadingFinished",
    {
      kind: "network",
      lost: requestsLost,
      read(target, params, event) {
        const response = target.requests.finished(params);
        if (response) tellResponse(target, response, event).catch(() => {});
        target.settling?.answered(textIn(params, "requestId") ?? "");
      },
    },
  ],
  [
    "Network.loadingFailed",
    {
      kind: "network",
      lost: requestsLost,
      read(target, params, event) {
        target.tell(target.requests.failed(params), event);
        target.settling?.answered(textIn(params, "requestId") ?? "");
      },
    },
  ],
  ["Page.frameStartedNavigating", { kind: "page", read: (target, params) => target.navigating(params) }],
  [
    "Page.frameNavigated",
    {
      kind: "page",
      longestBytes: longestAddressBytes,
      lost: navigatedUnseen,
      read(target, params, event) {
        const frame = recordIn(params, "frame");
        if (target.isTop(frame)) target.navigated(frame);
        const startedAt = target.startOf(frame);
        const facts = { startedAt, hasFailed: textIn(frame, "unreachableUrl") !== undefined };
        target.tell({ ...navigation(params, target.where), navigation: facts }, event);
        if (target.isTop(frame) && textIn(params, "type") === restored) target.settling?.restored();
      },
    },
  ],
  [
    "Page.domContentEventFired",
    {
      kind: "page",
      read: (target, params, event) => target.loaded("page_dom_content_loaded", params, event),
    },
  ],
  [
    "Page.loadEventFired",
    { kind: "page", read: (target, params, event) => target.loaded("page_load", params, event) },
  ],
  [
    "Page.lifecycleEvent",
    {
      kind: "page",
      read(target, params, event) {
        const step = loadSteps[textIn(params, "name") ?? ""];
        if (step && textIn(params, "frameId") === target.targetId) target.loaded(step, params, event);
      },
    },
  ],
  [
    "Page.javascriptDialogOpening",
    {
      kind: "page",
      // Its page would wait for good.
      lost: (target, frame) => void (wholeOf(frame).includes(noBrowserHandler) && target.dialogs.opened()),
      read(target, params) {
        if (flagIn(params, "hasBrowserHandler") === false) target.dialogs.opened();
      },
    },
  ],
  ["Page.javascriptDialogClosed", { kind: "page", read: (target) => target.dialogs.over() }],
  [
    "PerformanceTimeline.timelineEventAdded",
    {
      kind: "page",
      read(target, params, event) {
        const reading = timelineEvent(params);
        if (reading) target.tell(reading, event);
        if (reading?.type === "page_layout_shift") target.settling?.shifted();
      },
    },
  ],
  [
    "Inspector.targetCrashed",
    {
      kind: "page",
      read(target, _params, event) {
        if (!target.isPage) return;
        target.settling?.stop();
        const { target_id, target_type } = target.where;
        const { url, wasCut } = target.address;
        const data = { target_id, target_type, url };
        target.tell({ type: "page_crashed", category: "page", data, wasCut, saysWhere: true }, event);
      },
    },
  ],
]);
