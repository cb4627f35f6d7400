import type { Cdp } from "./cdp.js";
import type { LaunchSpec } from "../chromium.js";
import { outerSize } from "../switches.js";

/**
 * Gives a page's window the position and size that it had after launch. In headful mode the display has to
 * have its size before.
 */
export async function placeWindow(cdp: Cdp, page: string, spec: LaunchSpec): Promise<void> {
  const { windowId } = await cdp.send("Browser.getWindowForTarget", { targetId: page });
  // One that is minimised, maximised or full screen takes no size (Chromium 156,
  // docs/chromium.md#windows-and-displays).
  await cdp.send("Browser.setWindowBounds", { windowId, bounds: { windowState: "normal" } });
  await cdp.send("Browser.setWindowBounds", { windowId, bounds: { left: 0, top: 0, ...outerSize(spec) } });
  if (spec.kioskMode && !spec.headless) {
    await cdp.send("Browser.setWindowBounds", { windowId, bounds: { windowState: "fullscreen" } });
  }
}
