import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import type { ChangePasskey, FillPage } from "../../lease/fill-page.js";
import type { FillRefusal, PageFillOutcome } from "../../spec/page-fill.js";
import type { FillOutcome, VaultFill } from "../../vault/fill.js";

/** Why nothing was written, as the API answers it. */
const refusals: Readonly<Record<FillRefusal, Refusal>> = {
  page_not_found: refusal("bad_request", { message: "page_url: no open page has this address" }),
  ambiguous_page: refusal("bad_request", {
    message: "page_url: more than one open page is meant; name one that is open once",
  }),
  invalid_selector: refusal("bad_request", { message: "fields: a selector is no CSS selector" }),
  destination_denied: refusal("destination_denied"),
  browser_gone: refusal("browser_gone"),
};

/** Has pages filled by the nodes of their browsers. */
export const makeVaultFill = (fillPage: FillPage, changePasskey: ChangePasskey): VaultFill => ({
  isSupported: true,
  async fill(order) {
    const { browser, lease, bindings, timeoutMs } = order;
    const question = { browser, lease, order: JSON.stringify(order), fields: bindings.length, timeoutMs };
    const filled = await fillPage(question);
    return filled.kind === "refused" ? filled : outcomeOf(filled.value);
  },
  passkey: (order) =>
    changePasskey({ browser: order.browser, lease: order.lease, order: JSON.stringify(order) }),
});

function outcomeOf(outcome: PageFillOutcome): Done<FillOutcome> | Refusal {
  if (outcome.kind === "refused") return refusals[outcome.why];
  const { status, fields } = outcome;
  return done({
    status,
    fields: fields.map(({ error_code: errorCode, ...field }) => ({
      ...field,
      ...(errorCode && { errorCode }),
    })),
  });
}
