/** A credential's field as the model has it: `value` undefined where there is none. */
export interface ModelField {
  readonly name: string;
  readonly type: "text" | "password" | "totp" | "passkey";
  readonly required: boolean;
  readonly value?: string | undefined;
}
export interface ModelItem {
  readonly version: number;
  readonly fields: readonly ModelField[];
  readonly createdAs: string;
  /** The version and whether it holds; its token as soon as somebody was shown it. */
  readonly link?: { readonly holds: boolean; readonly token?: string };
}
interface ModelToken {
  readonly key: string;
  /** Which of the items that have had the key. */
  readonly birth: number;
  readonly version: number;
  readonly state: "open" | "expired" | "used";
}

/** What a step asks for. */
export type Step =
  | { readonly do: "put"; readonly key: string; readonly fields: readonly ModelField[] }
  | {
      readonly do: "patch";
      readonly key: string;
      readonly version: number;
      readonly remove?: string;
      readonly add?: ModelField;
      readonly set?: Readonly<Record<string, string | null>>;
      /** Whether what is sensitive comes encrypted. */
      readonly isEncrypted?: boolean;
    }
  | { readonly do: "get" | "wait" | "collect" | "delete" | "expire"; readonly key: string }
  | { readonly do: "open"; readonly token: string }
  | { readonly do: "submit"; readonly token: string; readonly values: Readonly<Record<string, string>> };

export const isOnForm = ({ type }: ModelField): boolean => type !== "totp" && type !== "passkey";
export const isPending = ({ fields }: ModelItem): boolean =>
  fields.some((field) => field.required && isOnForm(field) && field.value === undefined);
const definitionsOf = (fields: readonly ModelField[]): string =>
  JSON.stringify(fields.map(({ name, type, required }) => [name, type, required]));

const keptTokens = 20;

/**
 * The rules of credentials once more, as the interface tells them (docs/vault.md), over plain values and
 * without any store: what each step is answered, and what it leaves.
 */
export class VaultModel {
  items = new Map<string, ModelItem>();
  tokens = new Map<string, ModelToken>();
  births = new Map<string, number>();

  copy(): VaultModel {
    const copy = new VaultModel();
    copy.items = new Map(this.items);
    copy.tokens = new Map(this.tokens);
    copy.births = new Map(this.births);
    return copy;
  }

  /** What the step is answered: `done`, or why it is refused. */
  take(step: Step): string {
    switch (step.do) {
      case "put":
        return this.#put(step.key, step.fields);
      case "patch":
        return this.#patch(step);
      case "get":
      case "wait":
        return this.#with(step.key, (item) =>
          this.#renew(step.key, item, isPending(item) || Boolean(item.link)),
        );
      case "collect":
        return this.#with(step.key, (item) =>
          item.fields.some(isOnForm) ? this.#renew(step.key, item, true) : "operation_unavailable",
        );
      case "delete":
        return this.#with(step.key, () => {
          this.items.delete(step.key);
          return "done";
        });
      case "expire":
        return this.#expire(step.key);
      case "open":
        return this.#stateOf(step.token);
      case "submit":
        return this.#submit(step.token, step.values);
    }
  }

  /** That a link was shown: its token is known from here on, and stays the same. */
  shown(key: string, token: string): boolean {
    const item = this.items.get(key);
    if (!item?.link?.holds) return false;
    if (item.link.token !== undefined) return item.link.token === token;
    this.items.set(key, { ...item, link: { holds: true, token } });
    const birth = this.births.get(key) ?? 0;
    this.tokens.set(token, { key, birth, version: item.version, state: "open" });
    this.#forgetTokens();
    return true;
  }

  /** Steps name the latest tokens and those of links: all of a long walk would be copied at each race. */
  #forgetTokens(): void {
    const linked = new Set([...this.items.values()].map(({ link }) => link?.token));
    for (const token of [...this.tokens.keys()].slice(0, -keptTokens))
      if (!linked.has(token)) this.tokens.delete(token);
  }

  #with(key: string, work: (item: ModelItem) => string): string {
    const item = this.items.get(key);
    return item ? work(item) : "vault_item_not_found";
  }

  #renew(key: string, item: ModelItem, isWanted: boolean): string {
    if (isWanted && item.fields.some(isOnForm) && !item.link?.holds)
      this.items.set(key, { ...item, link: { holds: true } });
    return "done";
  }

  #put(key: string, fields: readonly ModelField[]): string {
    const item = this.items.get(key);
    const createdAs = definitionsOf(fields);
    if (item && item.createdAs !== createdAs && definitionsOf(item.fields) !== createdAs)
      return "item_exists";
    if (!item) {
      this.births.set(key, (this.births.get(key) ?? 0) + 1);
      this.#write(key, { version: 1, fields, createdAs });
      return "done";
    }
    return this.#renew(key, item, isPending(item) || Boolean(item.link));
  }

  /** The link of the version before is void; one that is pending has another. */
  #write(key: string, { link: _void, ...item }: ModelItem): void {
    const isLinked = isPending(item);
    this.items.set(key, { ...item, ...(isLinked && { link: { holds: true } }) });
  }

  #patch({ key, version, remove, add, set = {} }: Extract<Step, { do: "patch" }>): string {
    return this.#with(key, (item) => {
      if (item.version !== version) return "stale_version";
      const names = new Set(item.fields.map(({ name }) => name));
      if (remove !== undefined && !names.delete(remove)) return "bad_request";
      if (add && names.has(add.name)) return "bad_request";
      const fields = [...item.fields.filter(({ name }) => name !== remove), ...(add ? [add] : [])];
      if (fields.length === 0) return "bad_request";
      const isWrong = Object.entries(set).some(([name, value]) => {
        const field = fields.find((one) => one.name === name);
        return !field || (value === null && field.required && !isOnForm(field));
      });
      const lacks = add?.required && !isOnForm(add) && typeof set[add.name] !== "string";
      if (isWrong || lacks) return "bad_request";
      const changed = fields.map((field) =>
        field.name in set ? { ...field, value: set[field.name] ?? undefined } : field,
      );
      this.#write(key, { ...item, version: version + 1, fields: changed });
      return "done";
    });
  }

  #expire(key: string): string {
    const item = this.items.get(key);
    if (!item?.link?.holds || item.link.token === undefined) return "nothing";
    this.items.set(key, { ...item, link: { ...item.link, holds: false } });
    const { token } = item.link;
    const known = this.tokens.get(token);
    if (known) this.tokens.set(token, { ...known, state: "expired" });
    // What comes next is another link.
    this.items.set(key, { ...item, link: { holds: false } });
    return "done";
  }

  #stateOf(token: string): string {
    const known = this.tokens.get(token);
    if (!known) return "gone";
    if (known.state === "used") return "used";
    const item = this.items.get(known.key);
    if (!item || this.births.get(known.key) !== known.birth) return "gone";
    if (item.version !== known.version) return "replaced";
    return known.state === "expired" ? "expired" : "form";
  }

  #submit(token: string, values: Readonly<Record<string, string>>): string {
    const state = this.#stateOf(token);
    const known = this.tokens.get(token);
    const item = known && this.items.get(known.key);
    if (state !== "form" || !known || !item) return state;
    const shown = item.fields.filter(isOnForm);
    if (Object.keys(values).some((name) => !shown.some((field) => field.name === name))) return "invalid";
    const fields = item.fields.map((field) =>
      field.name in values ? { ...field, value: values[field.name] || undefined } : field,
    );
    if (fields.some((field) => field.required && isOnForm(field) && field.value === undefined))
      return "invalid";
    this.tokens.set(token, { ...known, state: "used" });
    this.#write(known.key, { ...item, version: item.version + 1, fields });
    return "done";
  }
}
