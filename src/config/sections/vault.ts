import { Type } from "typebox";
import { count, httpOrigin, oneOf, switched, textOr } from "../kinds.js";

const formSection = Type.Object({
  public_url: textOr("where people open the form that collects values, as they reach it from outside")(
    "nothing is collected by forms",
    httpOrigin,
  ),
});

export const vaultSection = Type.Object({
  max_vaults: count("vaults that a project may have", "vaults", [0, 10_000])(100),
  max_items: count("items that a vault may have", "items", [1, 10_000])(500),
  names: oneOf(
    "what providers and operations are called in answers: neutral: native, pm_fill; public: kernel, 1pw_fill; both are taken",
    ["neutral", "public"],
  )("neutral"),
  allow_lossy_redis: switched("whether vaults are written although Redis may lose what it has acknowledged")(
    false,
  ),
  form: formSection,
});
