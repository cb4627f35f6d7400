import { isRecord } from "../../base/is-record.js";
import type { SeenEvent } from "../event.js";

/** The host of the script that reported an error, or of the document where the event names no script. */
export function scriptHostOf({ data }: SeenEvent): string {
  const { source_url: source, stack_trace: stack, url } = data;
  const frames =
    isRecord(stack) && Array.isArray(stack["callFrames"]) ? (stack["callFrames"] as unknown[]) : [];
  const [top] = frames;
  const addresses = [source, isRecord(top) ? top["url"] : undefined, url];
  const address = addresses.find((each): each is string => typeof each === "string" && each !== "");
  if (address === undefined || !URL.canParse(address)) return unnamed;
  return new URL(address).hostname || unnamed;
}

/** Stands for what has no host, such as `data:` and what a client evaluates in an empty page. */
const unnamed = "other";
