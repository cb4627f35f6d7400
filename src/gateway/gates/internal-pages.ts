import { builtinExtensions } from "../../base/builtin-extensions.js";

/** Chromium's URL parser drops spaces and control characters; so does this, and more. */
const tidied = (url: string): string =>
  // oxlint-disable-next-line no-control-regex
  url.replace(/[\u0000-\u0020\u007f-\u00a0\u2000-\u200f\u2028-\u202f\ufeff]/g, "");

/** `file:`, also behind `view-source:` and the like. */
export const isFileUrl = (url: string): boolean => /^(?:[a-z][a-z0-9+.-]*:){0,8}file:/i.test(tidied(url));

const ownSchemes =
  /^(?:[a-z][a-z0-9+.-]*:){0,8}(?:(?:chrome|chrome-untrusted|chrome-search|chrome-native|chrome-distiller|devtools|isolated-app):|about:(?!(?:blank|srcdoc)?(?:$|[?#])))/i;

/**
 * The id of the extension that a URL belongs to; undefined where the host is not written as Chromium writes
 * it.
 */
const extensionOf = (url: string): string | undefined =>
  /^(?:[a-z][a-z0-9+.-]*:){0,8}chrome-extension:\/\/([a-p]{32})(?:$|[/?#])/i.exec(url)?.[1]?.toLowerCase();
const isOfExtension = (url: string): boolean => /^(?:[a-z][a-z0-9+.-]*:){0,8}chrome-extension:/i.test(url);

/**
 * Pages of Chromium itself. Those of its developer tools read any file for whoever scripts them, also when
 * policy has put an error page in their place, and chrome://inspect opens them (Chromium 156,
 * docs/chromium.md#its-own-pages); others end the browser or change its settings.
 */
export function isInternalPage(url: string): boolean {
  const tidy = tidied(url);
  return ownSchemes.test(tidy) || builtinExtensions.has(extensionOf(tidy) ?? "");
}

/**
 * What a target shows as its address where policy names the page of new tabs, or an extension does: never one
 * of Chromium's own.
 */
const newTab = "chrome://newtab/";

/** Whether scripts of a target may have the powers of an extension, such as `chrome.scripting`. */
export const isExtensionTarget = ({ url }: { readonly url: string }): boolean => isOfExtension(tidied(url));

/**
 * Whether no client may have a session on such a target. Chromium shows a PDF by a page of its own in a
 * guest, which has no address while a client could still plant scripts in it, and another type (`other`)
 * until it has one (Chromium 156 without PdfOopif).
 */
export const isClosedTarget = ({ type, url }: { readonly type: string; readonly url: string }): boolean =>
  type === "webview" || (type === "other" && url === "") || (url !== newTab && isInternalPage(url));

/**
 * Schemes with an address of their own, and those before another address. What begins with none is for
 * Chromium to refuse.
 */
const openSchemes = /^(?:https?|wss?|data|javascript|about):/i;
const prefixes = /^(?:(?:view-source|blob|filesystem):){1,8}/i;
const scheme = /^[a-z][a-z0-9+.-]*:/i;

/**
 * Why a client may not have Chromium load such an address; other schemes may start programs of the host, as
 * `mailto:` does (Chromium 156, docs/chromium.md#ways-past-the-proxy).
 */
export function whyNotOpened(url: string): string | undefined {
  if (isFileUrl(url)) return "file URLs are not open to clients";
  if (isInternalPage(url)) return "the browser's own pages are not open to clients";
  const inner = tidied(url).replace(prefixes, "");
  const isOpen = isOfExtension(inner)
    ? extensionOf(inner) !== undefined
    : openSchemes.test(inner) || !scheme.test(inner);
  return isOpen ? undefined : "addresses of this kind are not open to clients";
}
