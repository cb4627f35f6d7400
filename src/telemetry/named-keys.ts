/**
 * Keys that command a page. All others type a character, which is never told: neither by its name nor by its
 * code.
 */
export const namedKeys: readonly string[] =
  "Enter Tab Escape Backspace Delete Insert Home End PageUp PageDown ArrowUp ArrowDown ArrowLeft ArrowRight Shift Control Alt Meta CapsLock NumLock ScrollLock ContextMenu Pause PrintScreen F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12".split(
    " ",
  );
