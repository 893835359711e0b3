// The little script there is: parts that are fetched anew, the graph, and boxes that choose all.
"use strict";

// What is fetched anew waits while nobody looks at the page, and while somebody is in the part that would go.
document.addEventListener("htmx:beforeRequest", (event) => {
  const isTold = event.detail.elt.getAttribute("hx-trigger")?.startsWith("every");
  if (isTold && (document.hidden || event.detail.target.contains(document.activeElement))) event.preventDefault();
});
document.addEventListener("htmx:afterSettle", drawGraph);

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
  graph = new window.uPlot({
    width: width(), height: 200, axes: [axis, axis],
    scales: { x: { range: lastMinute }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    series: [{}, line("accepted", "--accent"), line("finished", "--good", { dash: [6, 4] }), line("failed", "--bad")],
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
