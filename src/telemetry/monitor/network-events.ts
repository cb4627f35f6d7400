import { Truncation } from "./truncation.js";
import { flagIn, numberIn, present, recordIn, type ProtocolRecord, textIn } from "./protocol-record.js";
import type { Reading } from "./reading.js";
import { type Asked, type RequestBytes, TargetRequests } from "./target-requests.js";

/** A response that is whole, and how much of its body is told with it. */
export interface FinishedResponse {
  readonly id: string;
  readonly data: ProtocolRecord;
  readonly wasCut: boolean;
  /** 0: none. */
  readonly bodyBytes: number;
}

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
  readonly #held: TargetRequests;

  constructor(ofBrowser?: RequestBytes) {
    this.#held = new TargetRequests(ofBrowser);
  }

  sent(params: ProtocolRecord, navSeq: number): Reading {
    const truncation = new Truncation();
    const request = recordIn(params, "request");
    const redirect = recordIn(params, "redirectResponse");
    const id = textIn(params, "requestId") ?? "";
    const url = truncation.url(textIn(request, "url"));
    // A request and its answer tell the same navigation, also where another has begun meanwhile.
    const fields = {
      request_id: id,
      loader_id: textIn(params, "loaderId"),
      frame_id: textIn(params, "frameId"),
      method: truncation.optional(textIn(request, "method"), longestMethodBytes),
      url,
      resource_type: textIn(params, "type"),
      nav_seq: navSeq,
    };
    this.#held.add(id, { fields, isCut: truncation.wasCut });
    const data = present({
      ...fields,
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
    if (!this.#held.has(id)) return undefined;
    const response = recordIn(params, "response");
    const truncation = new Truncation();
    const headers = recordIn(response, "headers");
    const mimeType = textIn(response, "mimeType") ?? "";
    const status = numberIn(response, "status");
    const fields = present({
      status,
      status_text: truncation.optional(textIn(response, "statusText"), 256),
      headers: headersOf(headers, truncation),
      mime_type: truncation.optional(mimeType, 256),
    });
    const code = proxyErrorOf(headers);
    const asked = code === undefined ? undefined : this.#held.asked(id);
    const { wasCut } = truncation;
    this.#held.answered(id, { fields, wasCut, bodyBytes: toldBodyBytes(mimeType) });
    if (!asked || !isOfEgress(asked, response)) return undefined;
    const data = present({ ...asked.fields, status, code });
    return { type: "proxy_error", category: "network", data, wasCut: asked.isCut };
  }

  /** Undefined where nothing was told of its beginning. */
  finished(params: ProtocolRecord): FinishedResponse | undefined {
    const id = textIn(params, "requestId") ?? "";
    const { asked, answer } = this.#held.take(id) ?? {};
    if (!asked || !answer) return undefined;
    const encodedBytes = numberIn(params, "encodedDataLength") ?? 0;
    return {
      id,
      data: { ...asked.fields, ...answer.fields },
      wasCut: answer.wasCut || asked.isCut,
      bodyBytes: encodedBytes > longestBodyBytes ? 0 : answer.bodyBytes,
    };
  }

  failed(params: ProtocolRecord): Reading {
    const id = textIn(params, "requestId") ?? "";
    const asked = this.#held.take(id)?.asked;
    const data = present({
      ...(asked?.fields ?? { request_id: id, resource_type: textIn(params, "type") }),
      method: undefined,
      error_text: textIn(params, "errorText"),
      canceled: flagIn(params, "canceled") ?? false,
    });
    return { type: "network_loading_failed", category: "network", data, wasCut: asked?.isCut ?? false };
  }

  clear(): void {
    this.#held.clear();
  }
}

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
const isOfEgress = ({ fields }: Asked, response: ProtocolRecord): boolean =>
  textIn(fields, "url")?.startsWith("http:") === true && flagIn(response, "fromServiceWorker") !== true;

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
