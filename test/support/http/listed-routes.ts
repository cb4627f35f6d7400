import { makeApp } from "../../../src/http/app.js";
import { httpOptions, makeDeps } from "./http-server.js";

/** A route of the server, also one that the OpenAPI document does not show. */
export interface ListedRoute {
  readonly method: string;
  /** As the document has it: `/browser_pools/{id_or_name}`. */
  readonly path: string;
  readonly audit?: "first" | "started";
  readonly takesMultipart?: true;
  readonly isHidden: boolean;
  /** What it may answer with beside JSON. */
  readonly contentTypes: readonly string[];
}

interface Told {
  readonly method: string | string[];
  readonly url: string;
  readonly config?: Pick<ListedRoute, "audit" | "takesMultipart">;
  readonly schema?: { readonly hide?: boolean; readonly response?: object };
}

export async function listRoutes(): Promise<readonly ListedRoute[]> {
  const routes: ListedRoute[] = [];
  const take = ({ method, url, config = {}, schema = {} }: Told): void => {
    const { audit, takesMultipart } = config;
    for (const one of [method].flat())
      routes.push({
        method: one,
        path: url.replaceAll(/:(\w+)/g, "{$1}"),
        ...(audit && { audit }),
        ...(takesMultipart && { takesMultipart }),
        isHidden: schema.hide === true,
        contentTypes: contentTypesIn(schema.response),
      });
  };
  const prepare = (app: { addHook: (name: "onRoute", hook: typeof take) => unknown }): void =>
    void app.addHook("onRoute", take);
  const app = makeApp(httpOptions, makeDeps(), {
    state: { draining: false, closing: false },
    prepare: prepare as never,
  });
  await app.ready();
  await app.close();
  return routes.filter(({ method }) => method !== "HEAD");
}

const contentTypesIn = (response: object = {}): readonly string[] =>
  [...new Set(JSON.stringify(response).match(/[a-z]+\/[a-z-]+(?=":\{)/g))].filter(
    (type) => type !== "application/json",
  );
