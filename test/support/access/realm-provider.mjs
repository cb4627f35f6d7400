// An OpenID Connect provider with the paths, claims and audience of Keycloak's realm `agents`, as docs/access.md makes it:
// `node realm-provider.mjs`, which tells its issuer on the first line. Who asks for `/let-in?user_code=…` logs in as Ada.
import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const [realm, audience, ada] = ["/realms/agents", "urn:remuda", "f3b0c442-98fc-1c14-9afb-f4c8996fb924"];
const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}${realm}`;
const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: "first" }] },
  clients: [
    {
      client_id: "remuda-cli",
      token_endpoint_auth_method: "none",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  routes: {
    device_authorization: `${realm}/protocol/openid-connect/auth/device`,
    token: `${realm}/protocol/openid-connect/token`,
    jwks: `${realm}/protocol/openid-connect/certs`,
  },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  ttl: { AccessToken: 300, DeviceCode: 600, Grant: 600, IdToken: 300 },
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "api",
        audience: "remuda",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  extraTokenClaims: () => ({
    email: "ada@example.com",
    email_verified: true,
    name: "Ada Byron",
    realm_access: { roles: ["default-roles-agents", "remuda-admin"] },
  }),
});
const answer = provider.callback();

async function letIn(userCode) {
  const code = await provider.DeviceCode.findByUserCode(userCode.replaceAll("-", ""));
  const grant = new provider.Grant({ accountId: ada, clientId: code.clientId });
  grant.addOIDCScope("openid");
  grant.addResourceScope(audience, "api");
  const grantId = await grant.save();
  Object.assign(code, { accountId: ada, grantId, scope: "openid api", resource: audience });
  await code.save();
}

server.on("request", (request, response) => {
  const { pathname, searchParams } = new URL(request.url, issuer);
  if (pathname === "/let-in")
    return void letIn(searchParams.get("user_code")).then(
      () => response.end("in\n"),
      (error) => response.writeHead(500).end(String(error)),
    );
  // The provider has its document at the root of its server.
  if (pathname === `${realm}/.well-known/openid-configuration`) request.url = pathname.slice(realm.length);
  return void answer(request, response);
});
process.stdout.write(`${issuer}\n`);
