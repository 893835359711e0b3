// A provider of OpenID Connect. It reads who is in which groups from a file at each login, and prints its address.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const [peopleFile, redirectUri] = process.argv.slice(2);
const server = createServer((request, response) => handle(request, response));
let handle;
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = {
    client_id: "waypost",
    client_secret: "s3cret/with:signs",
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code"],
    response_types: ["code"],
  };
  const provider = new Provider(issuer, {
    clients: [client],
    conformIdTokenClaims: false,
    claims: { openid: ["sub", "groups"], email: ["email", "email_verified"], profile: ["preferred_username"] },
    pkce: { required: () => true },
    ttl: { IdToken: 60 },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...JSON.parse(readFileSync(peopleFile, "utf8"))[id] }),
    }),
  });
  handle = provider.callback();
  console.log(issuer);
});
