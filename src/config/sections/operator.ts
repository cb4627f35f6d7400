import { Type } from "typebox";
import { httpOrigin, seconds, text, textOr } from "../kinds.js";

const label = { pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", form: "a name of Kubernetes" } as const;

export const operatorSection = Type.Object({
  api_url: textOr("where the operator reaches the API of Remuda")("none", {
    env: "REMUDA_API_URL",
    ...httpOrigin,
  }),
  namespace: text("namespace of the BrowserPools and of the nodes' pods")("remuda", {
    env: "REMUDA_NAMESPACE",
    ...label,
  }),
  period_seconds: seconds("BrowserPools are listed, and costs of pods are written, every", [1, 600])(10),
  request_limit_seconds: seconds("a request to Kubernetes or to the API is given up after", [1, 60])(10),
});
