"use strict";
// Draws log z over lam of the round that the slider shows. All text goes in as text, never as markup.
(function () {
  const slider = document.getElementById("round");
  const source = document.getElementById("rounds-data");
  if (!slider || !source) return;
  const data = JSON.parse(source.textContent);
  const rounds = data.rounds;
  const [width, height, left, right, top, bottom] = [640, 300, 70, 15, 12, 42];
  const space = "http://www.w3.org/2000/svg";

  function make(tag, attributes, content) {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (content !== undefined) element.textContent = content;
    return element;
  }

  // One scale for all rounds from the middle one on, so that the eye sees the curve settle.
  const late = rounds.slice(Math.floor(rounds.length / 2));
  const ends = late.flatMap((r) => r.mean.flatMap((m, i) => [m - 2 * r.se[i], m + 2 * r.se[i]]));
  let low = Math.min(...ends), high = Math.max(...ends);
  const pad = 0.06 * (high - low) || 0.5;
  low -= pad;
  high += pad;
  const places = rounds.flatMap((r) => [r.lam[0], r.lam[r.lam.length - 1]]);
  const first = Math.min(...places), last = Math.max(...places);
  const x = (lam) => left + (lam - first) / (last - first) * (width - left - right);
  const y = (value) => top + (Math.min(Math.max(value, low), high) - high) / (low - high) * (height - top - bottom);
  const points = (lam, values) => lam.map((l, i) => x(l).toFixed(1) + "," + y(values[i]).toFixed(1)).join(" ");

  // Round numbers from low to high, and the decimals that tell them apart.
  function ticks(from, to) {
    const rough = (to - from) / 5;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++) {
      found.push([k * step, (k * step).toFixed(decimals).replace(/^-(0(\.0+)?)$/, "$1").replace("-", "−")]);
    }
    return found;
  }

  function draw() {
    const r = rounds[Number(slider.value)];
    const upper = r.mean.map((m, i) => m + 2 * r.se[i]);
    const lower = r.mean.map((m, i) => m - 2 * r.se[i]);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": r.label });
    for (const [value, label] of ticks(low, high)) {
      svg.append(make("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid" }));
      svg.append(make("text", { x: left - 8, y: y(value) + 4, class: "right" }, label));
    }
    for (const [place, label] of ticks(first, last)) {
      svg.append(make("text", { x: x(place), y: height - bottom + 18, class: "middle" }, label));
    }
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 6, class: "middle" }, data.x));
    svg.append(make("text", { x: 14, y: height / 2, class: "middle", transform: `rotate(-90 14 ${height / 2})` },
      "log z(λ) − log z(0)"));
    const band = points(r.lam, upper) + " " + points([...r.lam].reverse(), [...lower].reverse());
    svg.append(make("polygon", { points: band, class: "band" }));
    svg.append(make("polyline", { points: points(r.lam, r.mean), class: "line" }));
    document.getElementById("round-curve").replaceChildren(svg);
    document.getElementById("round-label").textContent = r.label;
  }

  slider.addEventListener("input", draw);
  draw();
})();
