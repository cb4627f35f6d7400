// An OpenID Connect provider of its own process: `node oidc-provider.mjs`, which tells its issuer on the first line.
// A client's token says who the client is, by what stands in `users`.
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const users = {
  ada: { email: "ada@people.example", name: "Ada", roles: ["admin", "other"] },
  max: { email: "max@people.example", name: "Max", roles: ["member"] },
  rea: { email: "rea@people.example", name: "Rea", roles: ["reader"] },
  nil: { email: "nil@people.example", name: "Nil" },
};

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const key = { ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: "first" };
const provider = new Provider(issuer, {
  jwks: { keys: [key] },
  clients: [...Object.keys(users), "console"].map((id) => ({
    client_id: id,
    client_secret: `secret of ${id}`,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: "client_secret_post",
  })),
  ttl: { ClientCredentials: 600 },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, audience) => ({
        scope: "api",
        audience,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  extraTokenClaims: (_, { clientId }) => users[clientId === "console" ? "ada" : clientId],
});
server.on("request", provider.callback());
process.stdout.write(`${issuer}\n`);
