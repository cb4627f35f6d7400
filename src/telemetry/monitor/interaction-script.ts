import { namedKeys } from "../named-keys.js";

/** The world that the script runs in; pages have no access to it, and it has builtins of its own. */
export const worldName = "remuda-monitor";
/** A function of that world's own. */
export const bindingName = "remudaMonitor";

/**
 * Runs in each document before its own scripts. It only hears what a person or a command of CDP does
 * (`isTrusted`), and never tells what is written: of a key that writes a character, wherever, only that one
 * was pressed, since fields in closed shadow trees and those that pages make by themselves cannot be told
 * from other elements; of a field that takes a password or the like, nothing. Properties are read by the
 * getters of their prototypes, since a form shows its fields as properties of its own.
 */
export const interactionScript = `(() => {
  // Only a property of the world's own counts: an element with that id is a property too.
  if (Object.hasOwn(globalThis, "remudaIsHeard")) return;
  globalThis.remudaIsHeard = true;
  const getter = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return (object) => get.call(object);
  };
  const tagOf = getter(Element, "tagName");
  // In lower case and without a prefix, whether the document is of HTML or XHTML.
  const nameOf = getter(Element, "localName");
  const namespaceOf = getter(Element, "namespaceURI");
  const idOf = getter(Element, "id");
  const parentOf = getter(Node, "parentNode");
  const previousOf = getter(Element, "previousElementSibling");
  const topOf = getter(Element, "scrollTop");
  const leftOf = getter(Element, "scrollLeft");
  const isEditableOf = getter(HTMLElement, "isContentEditable");
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name) ?? "";
  const isElement = (value) => value instanceof Element;
  // Whether something of the event that is told next was left out.
  let isCut = false;
  const tell = (event) => {
    const told = JSON.stringify({ ...event, isCut });
    isCut = false;
    globalThis.${bindingName}(told);
  };
  const cut = (text, most) => {
    const characters = [...text.slice(0, 2 * most + 2)];
    if (characters.length <= most) return text;
    isCut = true;
    return characters.slice(0, most).join("");
  };
  // What an nth-of-type counts: a name without a prefix, and its namespace.
  const isOfType = (other, element) =>
    nameOf(other) === nameOf(element) && namespaceOf(other) === namespaceOf(element);
  const selectorOf = (element) => {
    const steps = [];
    for (let at = element; isElement(at) && steps.length < 6; at = parentOf(at)) {
      const name = CSS.escape(nameOf(at));
      const id = idOf(at);
      if (id !== "") {
        steps.unshift(name + "#" + CSS.escape(cut(id, 64)));
        break;
      }
      let place = 1;
      for (let other = previousOf(at); other && place < 1000; other = previousOf(other))
        if (isOfType(other, at)) place += 1;
      steps.unshift(name + (place > 1 ? ":nth-of-type(" + place + ")" : ""));
    }
    return cut(steps.join(" > "), 512);
  };
  const commands = new Set(${JSON.stringify(namedKeys)});
  const fields = new Set(["input", "textarea", "select"]);
  const isField = (element) =>
    fields.has(nameOf(element)) || (element instanceof HTMLElement && isEditableOf(element));
  const isSecret = (element) =>
    nameOf(element) === "input" &&
    (attribute(element, "type").toLowerCase() === "password" ||
      /password|one-time-code|cc-/i.test(attribute(element, "autocomplete")));
  const silent = new Set(["script", "style", "noscript", "textarea", "select", "option"]);
  const isSilent = (element) => silent.has(nameOf(element)) || isField(element);
  const textOf = (element) => {
    let [text, isWhole] = ["", true];
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
      isElement(node) && isSilent(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
    );
    for (let seen = 0; isWhole && walk.nextNode(); seen += 1) {
      const data = isElement(walk.currentNode) ? "" : walk.currentNode.data;
      text = (text + data.slice(0, 2000)).replace(/\\s+/g, " ");
      isWhole = seen < 200 && data.length <= 2000 && text.length <= 300;
    }
    isCut ||= !isWhole;
    return cut(text.trim(), 100);
  };
  const targetOf = (event) => event.composedPath().find(isElement);
  const clicked = (event) => {
    const element = targetOf(event);
    if (!event.isTrusted || !element) return;
    const { clientX: x, clientY: y } = event;
    // What is chosen or written in a field may stand in elements within it.
    const text = event.composedPath().some((on) => isElement(on) && isSilent(on)) ? "" : textOf(element);
    tell({ type: "click", x, y, selector: selectorOf(element), tag: cut(tagOf(element), 64), text });
  };
  const pressed = (event) => {
    const element = targetOf(event);
    if (!event.isTrusted || !element || isSecret(element)) return;
    const key = commands.has(event.key) ? event.key : "Character";
    tell({ type: "key", key, selector: selectorOf(element), tag: cut(tagOf(element), 64) });
  };
  const places = new WeakMap();
  const moving = new WeakMap();
  const placeOf = (element) => ({ x: leftOf(element), y: topOf(element) });
  const scrollerOf = (event) =>
    isElement(event.target) ? event.target : (document.scrollingElement ?? document.documentElement);
  const scrolls = (event) => {
    const element = scrollerOf(event);
    if (event.isTrusted && element && !moving.has(element))
      moving.set(element, places.get(element) ?? { x: 0, y: 0 });
  };
  const scrolled = (event) => {
    const element = scrollerOf(event);
    if (!event.isTrusted || !element) return;
    const to = placeOf(element);
    const from = moving.get(element) ?? places.get(element) ?? { x: 0, y: 0 };
    moving.delete(element);
    places.set(element, to);
    tell({ type: "scroll", selector: selectorOf(element), begin: from, end: to });
  };
  const listen = () => {
    for (const [name, listener] of [["click", clicked], ["keydown", pressed], ["scroll", scrolls], ["scrollend", scrolled]])
      window.addEventListener(name, listener, { capture: true, passive: true });
  };
  listen();
  // document.open() takes all listeners away, and all nodes.
  new MutationObserver(listen).observe(document, { childList: true });
  if (document.scrollingElement) places.set(document.scrollingElement, placeOf(document.scrollingElement));
})();`;
