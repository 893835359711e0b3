// The little script there is: parts that follow what happens, the graph, and boxes that choose all.
"use strict";

// The page as it is now comes as an event whenever it has changed, while somebody looks at it: the parts of it that are
// live take the place of those that are there, but not while somebody is in one, or points at one that is held.
const AGAIN_MS = 30_000, LOOK_MS = 1_000;
let stream = null, newest = null;

function show() {
  if (newest === null) return;
  let isWaiting = false;
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = newest.getElementById(part.id);
    if (next === null || part.isEqualNode(next)) continue;
    if (part.contains(document.activeElement) || (part.dataset.live === "held" && part.matches(":hover"))) isWaiting = true;
    else part.replaceWith(document.importNode(next, true));
  }
  if (!isWaiting) newest = null;
  drawGraph();
  if (document.querySelector("[data-live]") === null) follow(); // it has ended: nothing changes any more
}

function follow() {
  stream?.close();
  stream = null;
  if (document.hidden || document.querySelector("[data-live]") === null) return;
  stream = new EventSource(location.href);
  stream.addEventListener("message", (event) => {
    newest = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
    show();
  });
  stream.addEventListener("gone", () => location.reload()); // to the login, or to what is wrong
  stream.addEventListener("error", (event) => {
    if (event.target.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS);
  });
}

setInterval(show, LOOK_MS);
document.addEventListener("visibilitychange", follow);
document.addEventListener("DOMContentLoaded", follow);

let graph = null;

function drawGraph() {
  const place = document.getElementById("graph");
  const given = document.getElementById("points");
  if (place === null || given === null || window.uPlot === undefined) return;
  const points = JSON.parse(given.textContent);
  const data = [points.at, points.accepted, points.finished, points.failed];
  if (graph !== null) {
    graph.setData(data);
    return;
  }
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const line = (label, name, more = {}) => ({ label, stroke: colour(name), width: 2, ...more });
  const width = () => Math.max(200, place.clientWidth - 26);
  const lastMinute = ({ data: [at] }) => { // or longer, as far as there are points
    const end = at.at(-1) ?? Date.now() / 1000;
    return [Math.min(at[0] ?? end, end - 60), end];
  };
  const clock = (at) => typeof at === "number" ? new Date(at * 1000).toISOString().slice(11, 19) : "–"; // as all times here: UTC
  graph = new window.uPlot({
    width: width(), height: 200,
    axes: [{ ...axis, space: 80, values: (_, ticks) => ticks.map(clock) }, axis],
    scales: { x: { range: lastMinute }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    series: [{ label: "UTC", value: (_, at) => clock(at) }, line("accepted", "--accent"), line("finished", "--good", { dash: [6, 4] }), line("failed", "--bad")],
  }, data, place);
  addEventListener("resize", () => graph.setSize({ width: width(), height: 200 }));
}

// A box with data-all="ids" checks every box of that name in its form.
document.addEventListener("change", (event) => {
  const name = event.target.dataset && event.target.dataset.all;
  if (name) {
    for (const box of event.target.form.querySelectorAll(`input[name="${name}"]`)) box.checked = event.target.checked;
  }
});

// On a phone the menu is one row that scrolls: begin where the present page is.
document.addEventListener("DOMContentLoaded", () => {
  const here = document.querySelector("nav [aria-current='page']");
  const menu = here?.closest("nav");
  if (menu) menu.scrollLeft = here.offsetLeft - menu.offsetLeft - (menu.clientWidth - here.offsetWidth) / 2;
});

document.addEventListener("DOMContentLoaded", drawGraph);
