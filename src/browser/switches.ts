import type { LaunchSpec } from "./chromium.js";
import type { Sandbox } from "./isolation/sandbox.js";

/** What the switches need to know besides the browser's configuration. */
export interface SwitchFacts {
  readonly profile: string;
  readonly sandbox: Sandbox;
  /** Chromium's major version, needed for a headless browser in stealth only. */
  readonly majorVersion?: string;
  /** True where policy installs one of its extensions. */
  readonly hasForced?: boolean;
  /** True where no managed policy reaches it. */
  readonly lacksPolicy?: boolean;
}

/**
 * Height of tab strip and toolbar of full Chromium, which its headless mode also takes from the page
 * (Chromium 156, docs/chromium.md#windows-and-displays).
 */
const toolbarPixels = 87;

/**
 * This feature would show a PDF in frames of its page, and a client's scripts would run in a frame before it
 * has an address to judge. Without it there is a guest, which differs from pages from the first (Chromium
 * 156, docs/chromium.md#its-own-pages).
 */
const framedViewer = "PdfOopif";

/**
 * Features that cost launches and idle time without use here (docs/chromium.md#launch): the WebUI* ones
 * render hidden pages (0.6 CPU seconds and 60 MiB per browser), the spare renderer is a process, network time
 * a request. Chromium takes only the last `--disable-features`, so there may be but one.
 */
const disabledFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "WebUIReloadButton",
  "InitialWebUI",
  "PreloadTopChromeWebUI",
  "SpareRendererForSitePerProcess",
  "NetworkTimeServiceQuerying",
];

/**
 * Both engines render documents ahead for pages that ask for it by speculation rules, unless somebody is
 * attached to the page otherwise than by its tab (156). The document that was rendered so then comes without
 * a word, or as another target that has the page's history: a page that a vault has filled could be gone back
 * to.
 */
const prerendering = "Prerender2";

/**
 * This is for a browser that has nothing but its proxy. When a page asks for a WebRTC connection, Chromium
 * joins the group of multicast DNS, which tells the network of it by IGMP, although no candidate is ever
 * named. With this feature off it is silent, and there is still no candidate (Chromium 156,
 * docs/chromium.md#ways-past-the-proxy).
 */
const disabledByEgress = ["WebRtcHideLocalIpsWithMdns"];

function featureSwitches({ engine, egress }: LaunchSpec): string[] {
  const disabled = [
    prerendering,
    ...(engine === "chromium" ? [...disabledFeatures, framedViewer] : []),
    ...(egress ? disabledByEgress : []),
  ];
  return [`--disable-features=${disabled.join(",")}`];
}

/**
 * Chromium takes only the last `--enable-features` too. NetworkServiceInProcess2: one process and 16 MiB less
 * (docs/chromium.md#memory-and-processes). The other ends the time in which Chromium holds back what is not
 * urgent, such as answering that its cache is cleared, after 1 s; else that lasts until its first page has
 * come to rest, 3 s at best and minutes at worst. It costs no CPU time (Chromium 156: 0.38 to 0.42 s in the 6
 * s after launch, 0.42 s without it).
 */
const enabledFeatures = [
  "NetworkServiceInProcess2",
  "ImprovedStartupBestEffortDelay:StartupDelayFailsafeTimeout/1s",
];

/** Both engines get these. */
const common = [
  // This pipe is the only way to CDP: no port is open anywhere, and the end of the pipe ends the browser
  // (docs/chromium.md#the-pipe).
  "--remote-debugging-pipe",
  // There is no GPU; otherwise Chromium starts one process to find that out.
  "--disable-gpu",
  // Shared memory goes into TMPDIR, the browser's own directory, and is removed with it; both are tmpfs.
  "--disable-dev-shm-usage",
  `--enable-features=${enabledFeatures.join(",")}`,
  // UDP is a way out that no proxy sees (docs/chromium.md#ways-past-the-proxy).
  "--disable-quic",
  // A password store would ask the desktop's keyring over D-Bus.
  "--password-store=basic",
];

/**
 * This takes away the updates of extensions, and with them all that policy installs. Without it too a browser
 * was silent for 150 s (Chromium 156, docs/chromium.md#silence-on-the-network).
 */
const noUpdates = "--disable-background-networking";

/** Only full Chromium gets these. */
const full = [
  "--no-first-run",
  "--no-default-browser-check",
  // A profile may carry experiments of chrome://flags, which become switches at the start: --enable-quic is
  // among them (Chromium 156, docs/chromium.md#the-binary).
  "--no-experiments",
  // Silence on the network (docs/chromium.md#silence-on-the-network). Port 9 is one Chromium refuses to
  // connect to.
  noUpdates,
  "--disable-component-update",
  "--disable-sync",
  "--gaia-url=http://127.0.0.1:9/",
  "--component-updater=url-source=http://127.0.0.1:9/",
  // Where no policy silences it, a warning about unusual switches takes 56 pixels from the first page
  // (Chromium 156, docs/chromium.md#enterprise-policy).
  "--disable-infobars",
  // Headful Chromium exits with its last window; this holds the process until a new page is open (Chromium
  // 156, docs/chromium.md#windows-and-displays).
  "--keep-alive-for-test",
  // Older versions want it for Extensions.loadUnpacked; 156 does not (docs/chromium.md#extensions).
  "--enable-unsafe-extension-debugging",
];

/**
 * The switches that send everything through the browser's proxy (docs/chromium.md#ways-past-the-proxy).
 * Without the bypass list loopback and link-local addresses are dialled directly. Of the two WebRTC switches
 * one is for full Chromium and one for headless-shell. Without the resolver rule the names of TURN servers
 * and ICE candidates are looked up past the proxy.
 */
const egressSwitches = (proxyUrl: string): string[] => [
  `--proxy-server=${proxyUrl}`,
  "--proxy-bypass-list=<-loopback>",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  `--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE ${new URL(proxyUrl).hostname}`,
];

/**
 * Only policy or a namespace keeps an extension from changing the proxy. Where there is neither there are no
 * extensions: one that is loaded still gets an id, but never runs (docs/chromium.md#extensions).
 */
const barsExtensions = ({ egress, engine }: LaunchSpec, { lacksPolicy = false }: SwitchFacts): boolean =>
  lacksPolicy && engine === "chromium" && egress !== undefined && egress.namespace === undefined;

/**
 * Only headless-shell gets this. Its second zygote only forks the process for graphics, which starts as well
 * without it: a launch and a page take 3 to 5 % fewer instructions, and WebGL works as before (Chromium 156,
 * perf stat). Full Chromium gains nothing.
 */
const oneZygote = "--no-unsandboxed-zygote";

/** Every switch of one browser, each at most once, and the first page. */
export function switchesOf(spec: LaunchSpec, facts: SwitchFacts): string[] {
  return [
    ...common,
    ...(spec.engine === "headless-shell" ? [oneZygote] : []),
    ...(spec.engine === "chromium" ? full.filter((each) => each !== noUpdates || !facts.hasForced) : []),
    ...featureSwitches(spec),
    ...windowSwitches(spec),
    ...(spec.egress ? egressSwitches(spec.egress.proxyUrl) : []),
    ...(barsExtensions(spec, facts) ? ["--disable-extensions"] : []),
    ...(spec.stealth ? stealthSwitches(spec, facts) : []),
    ...(facts.sandbox === "none" ? ["--no-sandbox"] : []),
    `--user-data-dir=${facts.profile}`,
    "about:blank",
  ];
}

function windowSwitches(spec: LaunchSpec): string[] {
  const { width, height } = outerSize(spec);
  // Nothing else places the window: there is no window manager, and headless Chromium moves each new one by
  // ten pixels.
  const window = [`--window-size=${width},${height}`, "--window-position=0,0"];
  if (spec.engine === "headless-shell") return window;
  // The headless screen is 800 × 600 unless told; a window larger than its screen is a mark of automation.
  if (spec.headless) return ["--headless=new", ...window, `--screen-info={${width}x${height}}`];
  return [...window, ...(spec.kioskMode ? ["--kiosk"] : [])];
}

/**
 * The window's size. In headless modes the viewport is the page's size, for nobody sees a toolbar; in headful
 * mode it is the display's. A window of exactly the display's size is made one pixel narrower and lower by
 * Chromium, which fears that a window manager might take it for full screen (Chromium 156,
 * docs/chromium.md#windows-and-displays); one pixel lower alone keeps the width.
 */
export function outerSize({
  engine,
  headless,
  viewport,
}: Pick<LaunchSpec, "engine" | "headless" | "viewport">): LaunchSpec["viewport"] {
  if (engine === "headless-shell") return viewport;
  const { width, height } = viewport;
  return { width, height: headless ? height + toolbarPixels : height - 1 };
}

/**
 * What switches can honestly do against detection; no more is claimed. headless-shell goes on naming
 * `HeadlessChrome` among the brands of its client hints: no switch changes them, and a CDP override holds
 * only for one page and as long as the session that set it, so workers and pages that clients open would give
 * it away. Callers who need stealth take full Chromium.
 */
function stealthSwitches(spec: LaunchSpec, { majorVersion }: SwitchFacts): string[] {
  // `navigator.webdriver` would otherwise be true as soon as there is a pipe.
  const switches = ["--disable-blink-features=AutomationControlled"];
  const isHeadless = spec.headless || spec.engine === "headless-shell";
  if (!isHeadless || majorVersion === undefined) return switches;
  // The text headful Chromium of that version sends: user-agent reduction keeps only the major version.
  const agent = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${majorVersion}.0.0.0 Safari/537.36`;
  return [...switches, `--user-agent=${agent}`];
}
