import type { WrittenField, FillErrorCode, PageFillOutcome } from "../../spec/page-fill.js";

interface FieldState {
  status: WrittenField["status"];
  code?: FillErrorCode;
}

/** What has become of the fields of one fill so far; whatever ends it, this is what is true. */
export class FieldStates {
  readonly #fields: readonly FieldState[];
  #at = 0;

  constructor(count: number) {
    this.#fields = Array.from({ length: count }, () => ({ status: "not_attempted" }));
  }

  /** The fill is at this field from now on. */
  enter(index: number): void {
    this.#at = index;
  }

  /** From now on the value may be on the page. To be called before anything is sent. */
  writing(): void {
    this.#set({ status: "unknown" });
  }

  /** The write is known not to have begun. */
  unwritten(): void {
    this.#set({ status: "not_attempted" });
  }

  filled(): void {
    this.#set({ status: "filled" });
  }

  /** The fill ends at this field. */
  stop(code: FillErrorCode): void {
    const status = this.#fields[this.#at]?.status === "unknown" ? "unknown" : "failed";
    this.#set({ status, code });
  }

  outcome(): PageFillOutcome {
    const statuses = new Set(this.#fields.map(({ status }) => status));
    const isWhole = statuses.size === 1 && statuses.has("filled");
    return {
      kind: "ended",
      status: statuses.has("unknown") ? "unknown" : isWhole ? "completed" : "failed",
      fields: this.#fields.map(({ status, code }, index) => ({
        index,
        status,
        ...(code && { error_code: code }),
      })),
    };
  }

  #set({ status, code }: FieldState): void {
    const field = this.#fields[this.#at];
    if (!field) return;
    field.status = status;
    if (code) field.code = code;
  }
}
