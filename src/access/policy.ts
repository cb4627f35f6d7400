import { type Static, Type } from "typebox";
import { readonlyList } from "../base/parser.js";

/** One permission: an action such as `browsers:use`, and what it may be done to. */
const Statement = Type.Object({ action: Type.String(), resource: Type.String() });
/** What a key may do: nothing that no statement allows. */
export const Policy = Type.Object({ statements: readonlyList(Statement) });
export type Policy = Readonly<Static<typeof Policy>>;
