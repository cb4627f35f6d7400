/**
 * Finds the targets of a fill in one frame and pins them. It runs in an isolated world of the frame, and what
 * it returns stays there. A document and its forms show elements of the page as properties of their own, also
 * in such a world (HTML, named access), so nothing is asked of them but by prototypes, which the page cannot
 * change there.
 *
 * A value is written by the setter of the element's class, without focus and without keys: a handler of the
 * page could move the focus, and so what is typed, to another field. Frameworks that keep a copy of the value
 * hear of it by `input` and `change`.
 */
export const findTargets = `function (plans) {
  "use strict";
  const getterOf = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return (element) => get.call(element);
  };
  const shadowOf = getterOf(Element, "shadowRoot");
  const isConnected = getterOf(Node, "isConnected");
  const documentOf = getterOf(Node, "ownerDocument");
  const typeOf = (root) =>
    root instanceof Document ? Document : root instanceof DocumentFragment ? DocumentFragment : Element;
  const within = (root, selector) => [...typeOf(root).prototype.querySelectorAll.call(root, selector)];
  const rootsOf = (first) => {
    const roots = [first];
    const own = first instanceof Element ? shadowOf(first) : null;
    if (own) roots.push(own);
    for (const root of roots)
      for (const element of within(root, "*")) {
        const shadow = shadowOf(element);
        if (shadow) roots.push(shadow);
      }
    return roots;
  };
  const all = (roots, selector) => roots.flatMap((root) => within(root, selector));
  const parentOf = getterOf(Node, "parentNode");
  const hostOf = getterOf(ShadowRoot, "host");
  const above = (element) => {
    const parent = parentOf(element);
    return parent instanceof ShadowRoot ? hostOf(parent) : parent;
  };
  const isBelow = (element, found, isChild) => {
    for (let up = above(element); up; up = isChild ? null : above(up)) if (found.has(up)) return true;
    return false;
  };
  const across = (roots, [first, ...others]) =>
    others.reduce((found, { text, isChild }) => {
      const before = new Set(found);
      return all(roots, text).filter((element) => isBelow(element, before, isChild));
    }, all(roots, first.text));

  const texts = ["text", "email", "password", "search", "tel", "url", "number"];
  const isOfKind = (element) => {
    if (element instanceof HTMLInputElement) return texts.includes(element.type) && !element.readOnly;
    if (element instanceof HTMLTextAreaElement) return !element.readOnly;
    return element instanceof HTMLSelectElement;
  };
  const isVisible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && getComputedStyle(element).visibility === "visible";
  };
  const isHere = (element) => isConnected(element) && documentOf(element) === document;
  const isEditable = (element) =>
    isHere(element) && isOfKind(element) && !element.matches(":disabled") && isVisible(element);

  const pinned = [];
  const pin = (element) => {
    const at = pinned.indexOf(element);
    return at < 0 ? pinned.push(element) - 1 : at;
  };
  const roots = rootsOf(document);
  const hasShadows = roots.length > 1;
  const look = (plan) => {
    let matches = [];
    try {
      const further = hasShadows ? plan.across.flatMap((steps) => across(roots, steps)) : [];
      matches = [...new Set([...all(roots, plan.text), ...further])];
    } catch {
      return { matches: 0, isInvalid: true };
    }
    const [match] = matches;
    if (matches.length !== 1) return { matches: matches.length };
    const inside = () => all(rootsOf(match), "input, textarea, select").filter(isEditable);
    const editable = isEditable(match) ? [match] : inside();
    if (editable.length !== 1) return { matches: 1, editable: editable.length };
    const isSelect = editable[0] instanceof HTMLSelectElement;
    return { matches: 1, editable: 1, element: pin(editable[0]), isSelect };
  };

  const where = () => [location.href, self.origin, ...location.ancestorOrigins].join(" ");
  const found = plans.map(look);
  const before = where();
  const isSame = (at) => where() === before && at.every((each) => isEditable(pinned[each]));

  const tell = (element) => {
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const optionOf = (element, value) =>
    [...element.options].find((option) => option.value === value && !option.matches(":disabled"));
  const choose = (element, value) => {
    const option = optionOf(element, value);
    if (!option) return "option_not_found";
    option.selected = true;
    if (!option.selected) return "not_kept";
    tell(element);
    return isHere(element) ? (option.selected ? "filled" : "not_kept") : "gone";
  };
  const enter = (element, value) => {
    const type = element instanceof HTMLInputElement ? HTMLInputElement : HTMLTextAreaElement;
    const { get, set } = Object.getOwnPropertyDescriptor(type.prototype, "value");
    set.call(element, value);
    if (get.call(element) !== value) return "not_kept";
    tell(element);
    if (!isHere(element)) return "gone";
    return value !== "" && get.call(element) === "" ? "not_kept" : "filled";
  };
  const write = (at, value) => {
    if (!isSame([at])) return "target_changed";
    const element = pinned[at];
    return element instanceof HTMLSelectElement ? choose(element, value) : enter(element, value);
  };
  const hasOption = (at, value) => optionOf(pinned[at], value) !== undefined;
  return { summary: { found, origin: self.origin }, isSame, hasOption, write };
}`;

/** What `findTargets` says of one selector in one frame. */
export interface SearchOutcome {
  /** How many elements it matches, in open shadow roots too. */
  readonly matches: number;
  readonly isInvalid?: boolean;
  /** How many can be written into, where there is one match: itself, or what is inside it. */
  readonly editable?: number;
  /** The number of the one that can. */
  readonly element?: number;
  readonly isSelect?: boolean;
}

/** What a write has come to, in the page's words. `gone`: the page took the element away meanwhile. */
export type WriteOutcome = "filled" | "target_changed" | "option_not_found" | "not_kept" | "gone";

/** Calls on what `findTargets` has returned. */
export const inPageCalls = {
  summary: "function () { return this.summary; }",
  isSame: "function (at) { return this.isSame(at); }",
  hasOption: "function (at, value) { return this.hasOption(at, value); }",
  write: "function (at, value) { return this.write(at, value); }",
} as const;
