/** A step of a selector: what an element matches within its root, and how it stands to the step before. */
interface SelectorStep {
  readonly text: string;
  /** Whether the element of the step before is its parent, and not one that is anywhere above it. */
  readonly isChild: boolean;
}

/** A selector as a fill looks for it: as a whole within each root, and by its steps across them. */
interface SelectorPlan {
  readonly text: string;
  /** Its alternatives, as commas part them, of which each has several steps. */
  readonly across: readonly (readonly SelectorStep[])[];
}

/** CSS Syntax Level 3: strings, escapes and comments are taken whole; siblings stay in one step. */
const token =
  /"(?:\\[^]|[^"\\])*"|'(?:\\[^]|[^'\\])*'|\\[0-9a-fA-F]{1,6}\s?|\\[^]|\/\*[^]*?\*\/|\s*[>+~]\s*|\s*,\s*|\s+|[^]/g;
const depthOf: Readonly<Record<string, number>> = { "(": 1, "[": 1, ")": -1, "]": -1 };

/**
 * Reads the steps of a selector, so that `x-login input` finds an input in the shadow root of `x-login`, as
 * Playwright's selectors do. What stands in brackets, as that of `:has()`, is left whole. Chromium says
 * whether it is a selector at all.
 */
export function planOf(selector: string): SelectorPlan {
  const all: SelectorStep[][] = [[{ text: "", isChild: false }]];
  let depth = 0;
  for (const [text] of selector.trim().matchAll(token)) {
    depth += depthOf[text] ?? 0;
    const mark = text.trim();
    if (depth > 0 || !/^\s*[>,]\s*$|^\s+$/.test(text)) extend(all, text);
    else if (mark === ",") all.push([{ text: "", isChild: false }]);
    else all.at(-1)?.push({ text: "", isChild: mark === ">" });
  }
  return { text: selector, across: all.filter((steps) => steps.length > 1) };
}

function extend(all: SelectorStep[][], text: string): void {
  const steps = all.at(-1);
  const last = steps?.pop();
  if (last) steps?.push({ ...last, text: last.text + text });
}
