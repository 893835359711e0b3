// What a page of yours would have: the inbox, told who the user is and where a token comes from.
const { url, user } = await (await fetch("/session")).json();
await import(`${url}/sdk/inbox.js`);

const inbox = document.querySelector("waypost-inbox");
inbox.setAttribute("url", url);
inbox.setAttribute("user", user);
inbox.token = async () => (await fetch("/token")).text();

// The rest is the shop: a form that has its backend send something.
document.getElementById("user").textContent = user;
const log = document.getElementById("log");
const form = document.querySelector("form");
const begun = new Map();

function say(words) {
  const line = document.createElement("li");
  line.textContent = words;
  log.prepend(line);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = Object.fromEntries(new FormData(form));
  const start = performance.now();
  const answer = await fetch("/send", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(said) });
  const { id, error } = await answer.json();
  if (error) return say(`Refused: ${error}`);
  say(`Accepted as ${id}`);
  begun.set(id, start);
  arrived(id);
});

// The entry may come before the answer to the form.
const shown = new Map();
function arrived(id) {
  if (!shown.has(id) || !begun.has(id)) return;
  say(`In the inbox ${Math.round(shown.get(id) - begun.get(id))} ms after the click`);
  begun.delete(id);
}

inbox.client.on("entry", ({ id }) => {
  shown.set(id, performance.now());
  arrived(id);
});
