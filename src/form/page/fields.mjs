const template = /** @type {HTMLTemplateElement} */ (document.getElementById("field"));

/** The same limit as the vault's, in bytes of UTF-8. */
const mostBytes = 16_384;
/** What the vault takes for an address, too: the rule of the HTML standard for an input of type email. */
const address =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;
const mostOfAddress = 254;

/** Nothing is kept from a password manager; it is asked not to change what it has for this page itself. */
const completions = { text: "off", email: "email", password: "new-password" };

export const faultTexts = {
  required: "Enter a value.",
  invalid_email: "Enter an e-mail address, such as name@example.com.",
  too_long: "This is longer than can be kept.",
  undecryptable: "This could not be encrypted for the vault. Enter it again.",
};

/** One input of the form, and what is said about it. */
export class Field {
  #spec;
  #parts;
  /** A stored secret stays as it is until somebody chooses to replace it. */
  #isKept;
  /** What the input shows of the value before anybody has changed it; it may write line breaks otherwise. */
  #shown;

  constructor(spec, number) {
    this.#spec = spec;
    this.#parts = partsOf(template.content.cloneNode(true), hasLineBreak(spec.value));
    this.#isKept = spec.sensitive && spec.has_value;
    this.#fill(`field-${number}`);
    this.#showKept();
  }

  get element() {
    return this.#parts.field;
  }

  get name() {
    return this.#spec.name;
  }

  /** What is to be sent: nothing where nothing was changed. */
  get change() {
    if (this.#isKept) return undefined;
    const { value } = this.#parts.input;
    return value === this.#shown ? undefined : value;
  }

  /** What keeps it from being sent, as a key of `faultTexts`. */
  get fault() {
    if (this.#isKept) return undefined;
    const { value } = this.#parts.input;
    if (value === "") return this.#spec.required || this.#isReplaced ? "required" : undefined;
    if (value === this.#shown) return undefined;
    if (this.#spec.type === "email" && !isAddress(value)) return "invalid_email";
    return new TextEncoder().encode(value).length > mostBytes ? "too_long" : undefined;
  }

  /** A stored secret is replaced by another, never by nothing. */
  get #isReplaced() {
    return this.#spec.sensitive && this.#spec.has_value;
  }

  tell(fault) {
    const { input, fault: text } = this.#parts;
    text.hidden = fault === undefined;
    text.textContent = fault === undefined ? "" : (faultTexts[fault] ?? "Enter another value.");
    if (fault === undefined) input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
    this.#describe();
  }

  focus() {
    this.#parts.input.focus();
  }

  /** Leaves nothing of what was entered. */
  clear() {
    this.#parts.input.value = "";
  }

  #fill(id) {
    const { label, input, hint, fault, reveal, replace, keep } = this.#parts;
    const { type, required, value } = this.#spec;
    const text = this.#spec.label ?? this.#spec.name;
    label.textContent = text;
    label.htmlFor = input.id = id;
    hint.id = `${id}-hint`;
    fault.id = `${id}-fault`;
    hint.textContent = required ? "" : "You may leave this empty.";
    hint.hidden = required;
    if (input instanceof HTMLInputElement) input.type = type;
    Object.assign(input, { value: value ?? "", required, spellcheck: false });
    this.#shown = input.value;
    input.setAttribute("autocomplete", completions[type]);
    input.setAttribute("autocapitalize", "none");
    input.setAttribute("autocorrect", "off");
    reveal.hidden = type !== "password";
    reveal.setAttribute("aria-label", `Show ${text}`);
    replace.setAttribute("aria-label", `Replace ${text}`);
    keep.setAttribute("aria-label", `Keep the saved value of ${text}`);
    reveal.addEventListener("click", () => this.#reveal(input.type === "password"));
    replace.addEventListener("click", () => this.#choose(false));
    keep.addEventListener("click", () => this.#choose(true));
    input.addEventListener("input", () => this.tell(undefined));
    this.#describe();
  }

  #reveal(isShown) {
    const { input, reveal } = this.#parts;
    input.type = isShown ? "text" : "password";
    reveal.setAttribute("aria-pressed", String(isShown));
  }

  #choose(isKept) {
    this.#isKept = isKept;
    this.clear();
    this.tell(undefined);
    if (this.#spec.type === "password") this.#reveal(false);
    this.#showKept();
    (isKept ? this.#parts.replace : this.#parts.input).focus();
  }

  #showKept() {
    const { kept, entry, keep } = this.#parts;
    kept.hidden = !this.#isKept;
    entry.hidden = this.#isKept;
    keep.hidden = this.#isKept || !this.#isReplaced;
  }

  #describe() {
    const { input, hint, fault } = this.#parts;
    const described = [hint, fault].filter((part) => !part.hidden).map((part) => part.id);
    if (described.length > 0) input.setAttribute("aria-describedby", described.join(" "));
    else input.removeAttribute("aria-describedby");
  }
}

const isAddress = (text) => text.length <= mostOfAddress && address.test(text);

const hasLineBreak = (text) => /[\r\n]/.test(text ?? "");

/** `isLong`: the value has several lines, which an `input` would join to one. */
function partsOf(fragment, isLong) {
  const find = (selector) => fragment.querySelector(selector);
  find(isLong ? "input" : "textarea").remove();
  return {
    field: find(".field"),
    label: find("label"),
    hint: find(".hint"),
    kept: find(".kept"),
    replace: find(".replace"),
    entry: find(".entry"),
    input: find("input, textarea"),
    reveal: find(".reveal"),
    keep: find(".keep"),
    fault: find(".fault"),
  };
}
