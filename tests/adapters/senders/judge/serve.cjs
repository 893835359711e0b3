// web-push-testing on a free port of loopback alone (its own command listens everywhere); prints the port.
const { createRequire } = require("node:module");
const installed = createRequire(process.argv[2] + "/");
const { PushApiModel } = installed("web-push-testing/src/PushApiModel.js");
const Server = installed("web-push-testing/src/server.js");

const model = new PushApiModel();
const server = new Server(model, 0);
server.setRequestHandlers();
const listener = server._app.listen(0, "127.0.0.1", () => {
  model.notifyUrl = `http://127.0.0.1:${listener.address().port}/notify/`;
  console.log(listener.address().port);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0)); // whoever started it is gone
