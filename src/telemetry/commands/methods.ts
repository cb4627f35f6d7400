import type { ReportedMethod } from "../../spec/reported-methods.js";
import { namedKeys } from "../named-keys.js";
import {
  boolean,
  countOfRecords,
  countOfTexts,
  type Field,
  id,
  integer,
  isGiven,
  mediaKindsOf,
  number,
  only,
  required,
  scheme,
  textLength,
  which,
  word,
} from "./fields.js";

type Fields = Readonly<Record<string, Field>>;

const mouseEvents = ["mousePressed", "mouseReleased", "mouseMoved", "mouseWheel"];
const keyEvents = ["keyDown", "keyUp", "rawKeyDown", "char"];
const touchEvents = ["touchStart", "touchEnd", "touchMove", "touchCancel"];
const dragEvents = ["dragEnter", "dragOver", "drop", "dragCancel"];
const buttons = ["none", "left", "middle", "right", "back", "forward"];
const windowStates = ["normal", "minimized", "maximized", "fullscreen"];
const transitions =
  "link typed address_bar auto_bookmark auto_subframe manual_subframe generated auto_toplevel form_submit reload keyword keyword_generated".split(
    " ",
  );
const referrerPolicies =
  "noReferrer noReferrerWhenDowngrade origin originWhenCrossOrigin sameOrigin strictOrigin strictOriginWhenCrossOrigin unsafeUrl".split(
    " ",
  );

const at: Fields = { x: number("x"), y: number("y") };
const modifiers: Fields = { modifiers: integer("modifiers") };
const mouse: Fields = {
  event_type: required(word("type", mouseEvents)),
  ...at,
  ...modifiers,
  button: word("button", buttons),
  click_count: integer("clickCount"),
  delta_x: number("deltaX"),
  delta_y: number("deltaY"),
};
const gesture: Fields = { gesture_source_type: word("gestureSourceType", ["default", "touch", "mouse"]) };
const pressure = (within: string): Fields => ({
  force: number(`${within}force`),
  tangential_pressure: number(`${within}tangentialPressure`),
  tilt_x: number(`${within}tiltX`),
  tilt_y: number(`${within}tiltY`),
  twist: integer(`${within}twist`),
});
const node: Fields = {
  node_id: integer("nodeId"),
  backend_node_id: integer("backendNodeId"),
  object_id: id("objectId"),
};
const target: Fields = { target_id: required(id("targetId")) };
const place = (within: string): Fields => ({
  left: integer(`${within}left`),
  top: integer(`${within}top`),
  width: integer(`${within}width`),
  height: integer(`${within}height`),
  window_state: word(`${within}windowState`, windowStates),
});
const rectangle = (within: string, name: string): Fields =>
  Object.fromEntries(
    ["x", "y", "width", "height"].map((part) => [`${name}_${part}`, number(`${within}.${part}`)]),
  );

/**
 * Every command that is reported and what is told of it (docs/telemetry.md#clients-and-commands). Whatever
 * may be a secret (what was typed, addresses, scripts, templates, paths, what was dragged or filled in) is
 * told as a length, a count, a flag or one of a few words. Arguments that no field names are never read.
 */
export const reportedCommands = {
  "Input.dispatchMouseEvent": {
    ...mouse,
    buttons: integer("buttons"),
    pointer_type: word("pointerType", ["mouse", "pen"]),
    ...pressure(""),
  },
  "Input.dispatchKeyEvent": {
    event_type: required(word("type", keyEvents)),
    ...modifiers,
    text_length: textLength("text"),
    named_key: only("key", namedKeys),
    location: integer("location"),
    auto_repeat: boolean("autoRepeat"),
    is_keypad: boolean("isKeypad"),
    is_system_key: boolean("isSystemKey"),
    command_count: countOfTexts("commands"),
  },
  "Input.insertText": { text_length: required(textLength("text")) },
  "Input.imeSetComposition": {
    text_length: required(textLength("text")),
    selection_start: integer("selectionStart"),
    selection_end: integer("selectionEnd"),
    replacement_start: integer("replacementStart"),
    replacement_end: integer("replacementEnd"),
  },
  "Input.dispatchTouchEvent": {
    event_type: required(word("type", touchEvents)),
    touch_point_count: required(countOfRecords("touchPoints")),
    ...modifiers,
    // The first finger stands for all.
    x: number("touchPoints.0.x"),
    y: number("touchPoints.0.y"),
    radius_x: number("touchPoints.0.radiusX"),
    radius_y: number("touchPoints.0.radiusY"),
    rotation_angle: number("touchPoints.0.rotationAngle"),
    ...pressure("touchPoints.0."),
  },
  "Input.dispatchDragEvent": {
    event_type: required(word("type", dragEvents)),
    ...at,
    ...modifiers,
    drag_item_count: countOfRecords("data.items"),
    drag_file_count: countOfTexts("data.files"),
    drag_mime_categories: mediaKindsOf("data.items"),
    drag_operations_mask: integer("data.dragOperationsMask"),
  },
  "Input.cancelDragging": {},
  "Input.emulateTouchFromMouseEvent": mouse,
  "Input.synthesizePinchGesture": {
    ...at,
    scale_factor: number("scaleFactor"),
    relative_speed: integer("relativeSpeed"),
    ...gesture,
  },
  "Input.synthesizeScrollGesture": {
    ...at,
    x_distance: number("xDistance"),
    y_distance: number("yDistance"),
    x_overscroll: number("xOverscroll"),
    y_overscroll: number("yOverscroll"),
    prevent_fling: boolean("preventFling"),
    speed: integer("speed"),
    ...gesture,
    repeat_count: integer("repeatCount"),
    repeat_delay_ms: integer("repeatDelayMs"),
  },
  "Input.synthesizeTapGesture": {
    ...at,
    duration: integer("duration"),
    tap_count: integer("tapCount"),
    ...gesture,
  },

  "DOM.setFileInputFiles": { file_count: required(countOfTexts("files")), ...node },
  "DOM.focus": node,
  "DOM.scrollIntoViewIfNeeded": { ...node, ...rectangle("rect", "rect") },

  "Page.bringToFront": {},
  "Page.captureScreenshot": {
    format: word("format", ["jpeg", "png", "webp"]),
    quality: integer("quality"),
    ...rectangle("clip", "clip"),
    clip_scale: number("clip.scale"),
    from_surface: boolean("fromSurface"),
    capture_beyond_viewport: boolean("captureBeyondViewport"),
    optimize_for_speed: boolean("optimizeForSpeed"),
  },
  "Page.captureSnapshot": { format: word("format", ["mhtml"]) },
  "Page.handleJavaScriptDialog": {
    accept: required(boolean("accept")),
    prompt_text_length: textLength("promptText"),
  },
  "Page.navigate": {
    url_scheme: scheme("url"),
    transition_type: word("transitionType", transitions),
    referrer_present: isGiven("referrer"),
    referrer_policy: word("referrerPolicy", referrerPolicies),
    frame_id: id("frameId"),
  },
  "Page.navigateToHistoryEntry": { entry_id: required(integer("entryId")) },
  "Page.reload": {
    ignore_cache: boolean("ignoreCache"),
    script_length: textLength("scriptToEvaluateOnLoad"),
    loader_id: id("loaderId"),
  },
  "Page.printToPDF": {
    landscape: boolean("landscape"),
    scale: number("scale"),
    paper_width: number("paperWidth"),
    paper_height: number("paperHeight"),
    display_header_footer: boolean("displayHeaderFooter"),
    print_background: boolean("printBackground"),
    margin_top: number("marginTop"),
    margin_bottom: number("marginBottom"),
    margin_left: number("marginLeft"),
    margin_right: number("marginRight"),
    prefer_css_page_size: boolean("preferCSSPageSize"),
    transfer_mode: word("transferMode", ["ReturnAsBase64", "ReturnAsStream"]),
    generate_tagged_pdf: boolean("generateTaggedPDF"),
    generate_document_outline: boolean("generateDocumentOutline"),
    page_ranges_present: isGiven("pageRanges"),
    header_template_present: isGiven("headerTemplate"),
    footer_template_present: isGiven("footerTemplate"),
  },
  "Page.startScreencast": {
    format: word("format", ["jpeg", "png"]),
    quality: integer("quality"),
    max_width: integer("maxWidth"),
    max_height: integer("maxHeight"),
    every_nth_frame: integer("everyNthFrame"),
    max_frames_in_flight: integer("maxFramesInFlight"),
    send_last_frame: boolean("sendLastFrame"),
  },
  "Page.stopScreencast": {},
  "Page.stopLoading": {},
  "Page.close": {},
  "Page.setWebLifecycleState": { state: required(word("state", ["frozen", "active"])) },

  "Target.activateTarget": target,
  "Target.closeTarget": target,
  "Target.createTarget": {
    url_scheme: scheme("url"),
    ...place(""),
    browser_context_id: id("browserContextId"),
    new_window: boolean("newWindow"),
    background: boolean("background"),
    for_tab: boolean("forTab"),
    hidden: boolean("hidden"),
    enable_begin_frame_control: boolean("enableBeginFrameControl"),
    focus: boolean("focus"),
  },
  "Target.createBrowserContext": {
    dispose_on_detach: boolean("disposeOnDetach"),
    proxy_server_present: isGiven("proxyServer"),
    proxy_bypass_list_present: isGiven("proxyBypassList"),
    universal_network_access_origin_count: countOfTexts("originsWithUniversalNetworkAccess"),
  },
  "Target.disposeBrowserContext": { browser_context_id: required(id("browserContextId")) },
  "Target.openDevTools": { ...target, panel_id: id("panelId") },

  "Browser.cancelDownload": {
    download_guid: required(id("guid")),
    browser_context_id: id("browserContextId"),
  },
  "Browser.close": {},
  "Browser.setWindowBounds": { window_id: required(integer("windowId")), ...place("bounds.") },
  "Browser.setContentsSize": {
    window_id: required(integer("windowId")),
    width: integer("width"),
    height: integer("height"),
  },

  "Autofill.trigger": {
    field_id: required(integer("fieldId")),
    frame_id: id("frameId"),
    mode: which(["card", "address"]),
    address_field_count: countOfRecords("address.fields"),
  },
} as const satisfies Readonly<Record<ReportedMethod, Fields>>;
