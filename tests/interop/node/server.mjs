// An HTTP/2 server on Node's http2: answers with the SHA-256 of the body in hexadecimal, then the body.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";

const [certFile, keyFile] = process.argv.slice(2);
const server = createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
server.on("stream", (stream) => {
  const pieces = [];
  stream.on("data", (piece) => pieces.push(piece));
  stream.on("end", () => {
    const body = Buffer.concat(pieces);
    stream.respond({ ":status": 200 });
    stream.write(createHash("sha256").update(body).digest("hex"));
    stream.end(body);
  });
  stream.on("error", () => {}); // the client reset it
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
