import { Truncation } from "./truncation.js";
import { flagIn, numberIn, present, recordIn, type ProtocolRecord, textIn } from "./protocol-record.js";
import type { Reading } from "./reading.js";

/** One request that was told and is not over. */
interface RequestUnderWay {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly isCut: boolean;
  readonly loader: string | undefined;
  readonly frame: string | undefined;
  readonly resourceType: string | undefined;
  readonly navSeq: number;
  response?: Response;
  /** What it counts for so far. */
  heldBytes: number;
}

/** What is held of the requests under way, of all sessions of one browser together. */
export interface RequestBytes {
  held: number;
}

interface Response {
  readonly fields: ProtocolRecord;
  readonly mimeType: string;
  readonly wasCut: boolean;
}

/** A response that is whole, and how much of its body is told with it. */
export interface FinishedResponse {
  readonly id: string;
  readonly data: ProtocolRecord;
  readonly wasCut: boolean;
  /** 0: none. */
  readonly bodyBytes: number;
}

/** Older requests are forgotten: their answers are not told. */
const mostOpen = 1000;
/** Pages and servers choose how long the heads of requests are, and how long these are under way. */
const mostHeldBytes = 16 * 1024 * 1024;
const longestMethodBytes = 256;
const longestPostDataBytes = 8192;
const mostHeaders = 64;
const longestHeaderBytes = 1024;
/** A body longer than this is not asked for. */
const longestBodyBytes = 64 * 1024;

/** Headers that let somebody in, whatever stands around the word; of their values only the length is told. */
const secretHeader =
  /auth(?!or(?!iz))|cookie|keys?(?![a-z])|(?:api|access|private|client|subscription)[-_]?key|token|secret|passw|credential|session|signature|jwt|assertion|csrf|xsrf/i;

/** The requests of one CDP session (docs/telemetry.md#network). */
export class NetworkRequests {
  readonly #open = new Map<string, RequestUnderWay>();

  constructor(private readonly allBytes: RequestBytes = { held: 0 }) {}

  sent(params: ProtocolRecord, navSeq: number): Reading {
    const truncation = new Truncation();
    const request = recordIn(params, "request");
    const redirect = recordIn(params, "redirectResponse");
    const id = textIn(params, "requestId") ?? "";
    const url = truncation.url(textIn(request, "url"));
    const open = {
      method: truncation.optional(textIn(request, "method"), longestMethodBytes),
      url,
      isCut: truncation.wasCut,
      loader: textIn(params, "loaderId"),
      frame: textIn(params, "frameId"),
      resourceType: textIn(params, "type"),
      navSeq,
      heldBytes: 0,
    };
    this.#keep(id, open);
    const data = present({
      ...requestFields(id, open),
      document_url: truncation.url(textIn(params, "documentURL")),
      headers: headersOf(recordIn(request, "headers"), truncation),
      initiator_type: textIn(recordIn(params, "initiator"), "type"),
      post_data: truncation.optional(textIn(request, "postData"), longestPostDataBytes),
      is_redirect: "url" in redirect ? true : undefined,
      redirect_url: truncation.url(textIn(redirect, "url")),
    });
    return { type: "network_request", category: "network", data, wasCut: truncation.wasCut };
  }

  /** Notes the head of the answer; tells where the browser's way out has answered instead of a server. */
  responded(params: ProtocolRecord): Reading | undefined {
    const id = textIn(params, "requestId") ?? "";
    const open = this.#open.get(id);
    const response = recordIn(params, "response");
    if (!open) return undefined;
    const truncation = new Truncation();
    const headers = recordIn(response, "headers");
    const mimeType = textIn(response, "mimeType") ?? "";
    const fields = present({
      status: numberIn(response, "status"),
      status_text: truncation.optional(textIn(response, "statusText"), 256),
      headers: headersOf(headers, truncation),
      mime_type: truncation.optional(mimeType, 256),
    });
    open.response = { fields, mimeType, wasCut: truncation.wasCut };
    this.#hold(open, fields);
    const code = isOfEgress(open, response) ? proxyErrorOf(headers) : undefined;
    const data = present({ ...requestFields(id, open), status: fields["status"], code });
    const { isCut: wasCut } = open;
    return code === undefined ? undefined : { type: "proxy_error", category: "network", data, wasCut };
  }

  /** Undefined where nothing was told of its beginning. */
  finished(params: ProtocolRecord): FinishedResponse | undefined {
    const id = textIn(params, "requestId") ?? "";
    const open = this.#forget(id);
    if (!open?.response) return undefined;
    const { fields, mimeType, wasCut } = open.response;
    const encodedBytes = numberIn(params, "encodedDataLength") ?? 0;
    return {
      id,
      data: present({ ...requestFields(id, open), ...fields }),
      wasCut: wasCut || open.isCut,
      bodyBytes: encodedBytes > longestBodyBytes ? 0 : toldBodyBytes(mimeType),
    };
  }

  failed(params: ProtocolRecord): Reading {
    const id = textIn(params, "requestId") ?? "";
    const open = this.#forget(id);
    const data = present({
      ...(open ? requestFields(id, open) : { request_id: id, resource_type: textIn(params, "type") }),
      method: undefined,
      error_text: textIn(params, "errorText"),
      canceled: flagIn(params, "canceled") ?? false,
    });
    return { type: "network_loading_failed", category: "network", data, wasCut: open?.isCut ?? false };
  }

  clear(): void {
    for (const id of this.#open.keys()) this.#forget(id);
  }

  #keep(id: string, open: RequestUnderWay): void {
    // One that was redirected comes again.
    this.#forget(id);
    if (this.#open.size >= mostOpen) this.#forgetOldest();
    this.#open.set(id, open);
    this.#hold(open, requestFields(id, open));
  }

  #hold(open: RequestUnderWay, fields: ProtocolRecord): void {
    const bytes = JSON.stringify(fields).length;
    open.heldBytes += bytes;
    this.allBytes.held += bytes;
    while (this.allBytes.held > mostHeldBytes && this.#open.size > 0) this.#forgetOldest();
  }

  #forgetOldest(): void {
    const [oldest] = this.#open.keys();
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(id: string): RequestUnderWay | undefined {
    const open = this.#open.get(id);
    this.#open.delete(id);
    this.allBytes.held -= open?.heldBytes ?? 0;
    return open;
  }
}

/** A request and its answer tell the same navigation, also where another has begun meanwhile. */
const requestFields = (id: string, open: RequestUnderWay): ProtocolRecord => ({
  request_id: id,
  loader_id: open.loader,
  frame_id: open.frame,
  method: open.method,
  url: open.url,
  resource_type: open.resourceType,
  nav_seq: open.navSeq,
});

function headersOf(headers: ProtocolRecord, truncation: Truncation): ProtocolRecord {
  const told = truncation.list(Object.entries(headers), mostHeaders).map(([name, value]) => {
    const text = String(value);
    const shown = secretHeader.test(name)
      ? `[${text.length} characters]`
      : truncation.header(text, longestHeaderBytes);
    return [truncation.text(name, 256), shown] as const;
  });
  return Object.fromEntries(told);
}

/** Structured texts are told longer than others, and what is no text is not told. */
function toldBodyBytes(mimeType: string): number {
  if (/json|xml|x-www-form-urlencoded/i.test(mimeType)) return 8192;
  return /^text\/|javascript|ecmascript/i.test(mimeType) ? 4096 : 0;
}

interface Body {
  readonly body?: string;
  readonly wasCut: boolean;
}

/** What is told of a body; binary ones come in base64. */
export function bodyOf(reply: ProtocolRecord, mostBytes: number): Body {
  const body = textIn(reply, "body");
  if (body === undefined || flagIn(reply, "base64Encoded") === true) return { wasCut: false };
  const truncation = new Truncation();
  return { body: truncation.text(body, mostBytes), wasCut: truncation.wasCut };
}

/**
 * The way out answers plain requests and lets no server send its header there (docs/egress.md#rules). What
 * comes through a tunnel, or from a page's service worker, is not its own.
 */
const isOfEgress = ({ url = "" }: RequestUnderWay, response: ProtocolRecord): boolean =>
  url.startsWith("http:") && flagIn(response, "fromServiceWorker") !== true;

/** The public code for what the browser's way out says of itself in its answers (docs/egress.md). */
const proxyErrors: Readonly<Record<string, string>> = {
  denied: "destination_blocked",
  limited: "proxy_unavailable",
  failed: "upstream_connect_failed",
};

function proxyErrorOf(headers: ProtocolRecord): string | undefined {
  const name = Object.keys(headers).find((each) => each.toLowerCase() === "x-remuda-egress");
  return name === undefined ? undefined : proxyErrors[textIn(headers, name) ?? ""];
}
