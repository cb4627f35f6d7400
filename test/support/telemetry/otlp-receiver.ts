import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import type { Type } from "protobufjs";
import root from "otlp-messages/build/src/generated/root.js";
import { until } from "../browser/chromium-until.js";

/**
 * Made of OpenTelemetry's protocol files; later versions of their package have no messages to read any more.
 */
interface Messages {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly logs: { readonly v1: { ExportLogsServiceRequest: Type } };
        readonly trace: { readonly v1: { ExportTraceServiceRequest: Type } };
      };
    };
  };
}
const { logs, trace } = (root as unknown as Messages).opentelemetry.proto.collector;
const { ExportLogsServiceRequest } = logs.v1;
const { ExportTraceServiceRequest } = trace.v1;

/** An OTLP log record as a receiver has it, its values in plain JSON. */
export interface ReceivedRecord {
  readonly type: string;
  readonly body: unknown;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly severity: string;
  /** Unix nanoseconds. */
  readonly at: string;
  readonly traceId?: string;
  readonly spanId?: string;
}

/** An OTLP span as a receiver has it; ids in hexadecimal digits, times in Unix nanoseconds. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly state: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly from: bigint;
  readonly until: bigint;
  readonly failure?: string;
}
interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

interface Value {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly Value[] };
  readonly kvlistValue?: { readonly values?: readonly KeyValue[] };
}
interface KeyValue {
  readonly key: string;
  readonly value?: Value;
}
interface Decoded {
  readonly resourceLogs?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeLogs?: readonly {
      readonly logRecords?: readonly {
        readonly eventName?: string;
        readonly body?: Value;
        readonly attributes?: readonly KeyValue[];
        readonly severityText?: string;
        readonly timeUnixNano?: string;
        readonly traceId?: string;
        readonly spanId?: string;
      }[];
    }[];
  }[];
}
interface DecodedSpan {
  readonly name?: string;
  readonly kind?: number;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly links?: readonly { readonly traceId?: string; readonly spanId?: string }[];
  readonly attributes?: readonly KeyValue[];
  readonly startTimeUnixNano?: string;
  readonly endTimeUnixNano?: string;
  readonly status?: { readonly code?: number; readonly message?: string };
}
interface DecodedTraces {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly DecodedSpan[] }[];
  }[];
}

const hex = (base64 = ""): string => Buffer.from(base64, "base64").toString("hex");
const asJson = { longs: String, bytes: String };

const plain = (value: Value = {}): unknown => {
  if (value.arrayValue) return (value.arrayValue.values ?? []).map(plain);
  if (value.kvlistValue) return plainAll(value.kvlistValue.values);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? null;
};
const plainAll = (values: readonly KeyValue[] = []): Record<string, unknown> =>
  Object.fromEntries(values.map(({ key, value }) => [key, plain(value)]));

/** Reads a request by the messages that OpenTelemetry's protocol files describe. */
function recordsIn(bytes: Buffer): readonly ReceivedRecord[] {
  const message = ExportLogsServiceRequest.decode(bytes);
  const decoded = ExportLogsServiceRequest.toObject(message, asJson) as Decoded;
  return (decoded.resourceLogs ?? []).flatMap(({ resource, scopeLogs = [] }) =>
    scopeLogs.flatMap(({ logRecords = [] }) =>
      logRecords.map(
        ({ eventName = "", body, attributes, severityText = "", timeUnixNano = "", ...ids }) => ({
          type: eventName,
          body: plain(body),
          attributes: plainAll(attributes),
          resource: plainAll(resource?.attributes),
          severity: severityText,
          at: timeUnixNano,
          ...(ids.traceId && { traceId: hex(ids.traceId), spanId: hex(ids.spanId) }),
        }),
      ),
    ),
  );
}

function spansIn(bytes: Buffer): readonly ReceivedSpan[] {
  const decoded = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), asJson);
  return ((decoded as DecodedTraces).resourceSpans ?? []).flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => spanOf(span, plainAll(resource?.attributes)))),
  );
}

const spanOf = (span: DecodedSpan, resource: ReceivedSpan["resource"]): ReceivedSpan => ({
  name: span.name ?? "",
  kind: span.kind ?? 0,
  traceId: hex(span.traceId),
  spanId: hex(span.spanId),
  parentId: hex(span.parentSpanId),
  state: span.traceState ?? "",
  links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId: hex(traceId), spanId: hex(spanId) })),
  attributes: plainAll(span.attributes),
  resource,
  from: BigInt(span.startTimeUnixNano ?? 0),
  until: BigInt(span.endTimeUnixNano ?? 0),
  ...(span.status?.code === 2 && { failure: span.status.message ?? "" }),
});

/** What a receiver answers a request, the first being number 1. */
export type Answer = (response: ServerResponse, request: { readonly number: number }) => void;
export const accept: Answer = (response) =>
  void response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
export const answering =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(status, headers).end();

/** A collector that takes OTLP over HTTP, on a port of loopback. */
export class OtlpReceiver {
  readonly requests: ReceivedRequest[] = [];
  readonly records: ReceivedRecord[] = [];
  readonly spans: ReceivedSpan[] = [];
  answer: Answer = accept;
  #close: () => Promise<void> = async () => {};
  port = 0;

  async start(certificate?: { readonly key: string; readonly cert: string }): Promise<this> {
    const listener = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#take(request, response);
    const server = certificate ? createTlsServer(certificate, listener) : createServer(listener);
    await once(server.listen(0, "127.0.0.1"), "listening");
    this.port = (server.address() as AddressInfo).port;
    this.#close = async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    };
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** The records, once there are so many. */
  async has(count: number): Promise<readonly ReceivedRecord[]> {
    await until(`${count} records`, () => this.records.length >= count, 20_000);
    return this.records;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    try {
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    } catch {
      return;
    }
    const packed = Buffer.concat(parts);
    const bytes = request.headers["content-encoding"] === "gzip" ? gunzipSync(packed) : packed;
    this.requests.push({ path: request.url ?? "", headers: request.headers, bytes });
    const { writableEnded } = response;
    this.answer(response, { number: this.requests.length });
    if (writableEnded || response.statusCode !== 200) return;
    // What others than exporters send here is kept in `requests` alone.
    if (request.headers["content-type"] !== "application/x-protobuf") return;
    if (request.url?.endsWith("/v1/traces")) this.spans.push(...spansIn(bytes));
    else this.records.push(...recordsIn(bytes));
  }
}
