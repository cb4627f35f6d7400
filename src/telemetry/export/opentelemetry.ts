import { atFirstUse } from "../../base/at-first-use.js";

/** OpenTelemetry's client costs a daemon 15 MiB, which only those pay that export. */
export const openTelemetry = atFirstUse((require) => ({
  api: require("@opentelemetry/api") as typeof import("@opentelemetry/api"),
  apiLogs: require("@opentelemetry/api-logs") as typeof import("@opentelemetry/api-logs"),
  resources: require("@opentelemetry/resources") as typeof import("@opentelemetry/resources"),
  transformer: require("@opentelemetry/otlp-transformer") as typeof import("@opentelemetry/otlp-transformer"),
  exporter:
    require("@opentelemetry/otlp-exporter-base") as typeof import("@opentelemetry/otlp-exporter-base"),
  http: require("@opentelemetry/otlp-exporter-base/node-http") as typeof import("@opentelemetry/otlp-exporter-base/node-http"),
}));
