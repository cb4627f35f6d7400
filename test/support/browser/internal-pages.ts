import { readFileSync } from "node:fs";
import { join } from "node:path";

interface InternalPage {
  readonly url: string;
  /** `closed`: a page; `command`: no page, but something that the browser does at once. */
  readonly how: "closed" | "command";
}

/** Every page that the installed Chromium says it has. */
export const internalPages: readonly InternalPage[] = readFileSync(
  join(import.meta.dirname, "internal-pages.txt"),
  "utf8",
)
  .split("\n")
  .filter((line) => line.startsWith("chrome"))
  .map((line) => {
    const [url = "", how] = line.split(" ");
    return { url, how: how === "command" ? "command" : "closed" };
  });
