/**
 * The types of events by where the corpus causes them. What is documented and not in here, or the other way
 * round, fails test/telemetry/documented-types.test.ts; what is in here and not caused, the test that names
 * its list.
 */

/** What a page or an action in it causes, in each way Chromium runs (telemetry/monitor/corpus.test.ts). */
export const typesOfPages = [
  "console_log",
  "console_error",
  "network_request",
  "network_response",
  "network_loading_failed",
  "network_idle",
  "proxy_error",
  "page_tab_opened",
  "page_navigation",
  "page_dom_content_loaded",
  "page_load",
  "page_layout_shift",
  "page_lcp",
  "page_layout_settled",
  "page_navigation_settled",
  "page_crashed",
  "interaction_click",
  "interaction_key",
  "interaction_scroll_settled",
  "monitor_screenshot",
] as const;

/** What takes a daemon, in each way Chromium runs (test/system/telemetry/corpus.test.ts). */
export const typesOfDaemons = [
  "cdp_connect",
  "cdp_command",
  "cdp_disconnect",
  "api_call",
  "platform_api_call",
  "captcha_solve_result",
  "monitor_events_dropped",
  "monitor_disconnected",
  "monitor_reconnected",
  "system_oom_kill",
  "service_crashed",
] as const;

/** What a Chromium that works never causes: scripted ones do (test/telemetry/monitor/refusals.test.ts). */
export const typesOfRefusals = ["monitor_init_failed", "monitor_reconnect_failed"] as const;
