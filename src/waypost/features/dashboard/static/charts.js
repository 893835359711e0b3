// Charts of pages: each element with data-chart="id" draws the JSON of the element with that id.
"use strict";

(() => {
  const HEIGHT = 220;
  const charts = new Map();

  function draw(place) {
    const given = document.getElementById(place.dataset.chart);
    if (given === null || window.uPlot === undefined) return;
    const said = JSON.parse(given.textContent);
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const isPart = said.unit === "percent";
    const written = (value) => value === null || value === undefined ? "–"
      : isPart ? `${(100 * value).toFixed(1)} %` : value.toLocaleString("en").replaceAll(",", " ");
    const local = (form) => new Intl.DateTimeFormat("sv", { timeZone: said.zone, ...form });
    const day = local({ dateStyle: "short" }), hour = local({ timeStyle: "short" });
    const moment = (at) => at === null ? "–" : `${day.format(at * 1000)} ${hour.format(at * 1000)}`;
    const ticksOf = (_, ticks, __, ___, step) => ticks.map((at, n) => {
      const date = day.format(at * 1000).slice(5);
      if (step >= 86400) return date;
      const isNew = n === 0 || day.format(ticks[n - 1] * 1000).slice(5) !== date;
      return `${hour.format(at * 1000)}${isNew ? `\n${date}` : ""}`;
    });
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const width = () => Math.max(200, place.clientWidth - 26);
    const lines = said.lines.map(({ label, colour: name, dash }) => ({
      label, dash, stroke: colour(name), width: 2, points: { show: said.at.length < 60 },
      value: (_, value) => written(value),
    }));
    charts.get(place)?.destroy();
    charts.set(place, new window.uPlot({
      width: width(), height: HEIGHT,
      tzDate: (at) => window.uPlot.tzDate(new Date(at * 1000), said.zone),
      axes: [{ ...axis, values: ticksOf }, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => isPart ? `${Math.round(100 * tick)} %` : written(tick)) }],
      scales: { y: { range: (_, low, high) => [0, isPart ? 1 : Math.max(1, high * 1.1)] } },
      series: [{ label: "from", value: (_, at) => moment(at) }, ...lines],
    }, [said.at, ...said.lines.map((line) => line.values)], place));
    return width;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const places = document.querySelectorAll("[data-chart]");
    const widths = new Map([...places].map((place) => [place, draw(place)]));
    addEventListener("resize", () => {
      for (const [place, chart] of charts) chart.setSize({ width: widths.get(place)(), height: HEIGHT });
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));
  });
})();
