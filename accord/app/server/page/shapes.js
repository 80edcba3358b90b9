// Colours and shapes of states: a label is never told by colour alone.

export const SHAPES = ["ellipse", "rectangle", "triangle", "diamond", "pentagon", "hexagon", "star", "barrel", "octagon", "tag"];
const OUTLINES = { // in a square from 0 to 20, for the legend
  ellipse: "M10 1a9 9 0 1 0 .01 0z",
  rectangle: "M2 2h16v16h-16z",
  triangle: "M10 1 19 19H1z",
  diamond: "M10 0 20 10 10 20 0 10z",
  pentagon: "M10 1 19 8 16 19H4L1 8z",
  hexagon: "M5 2h10l5 8-5 8H5L0 10z",
  star: "M10 0l3 7h7l-6 4 2 8-6-5-6 5 2-8-6-4h7z",
  barrel: "M2 5q8-5 16 0v10q-8 5-16 0z",
  octagon: "M6 1h8l5 5v8l-5 5H6l-5-5V6z",
  tag: "M1 3h12l6 7-6 7H1z",
};
const UNKNOWN = "#9aa0a6";

export const shapeOf = (state) => (state < 0 ? "ellipse" : SHAPES[state % SHAPES.length]);
export const colourOf = (state, colours) => (state < 0 ? UNKNOWN : colours[state]);

/** A small picture of a state for the legend. */
export function symbol(state, colours) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-1 -1 22 22");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", OUTLINES[shapeOf(state)]);
  path.setAttribute("fill", colourOf(state, colours));
  svg.append(path);
  return svg;
}

/** The colour of an uncertainty between 0 (sure) and 1. */
export function ramp(value) {
  const style = getComputedStyle(document.documentElement);
  const [from, to] = ["--sure", "--unsure"].map((name) => parse(style.getPropertyValue(name).trim()));
  return `rgb(${from.map((start, i) => Math.round(start + (to[i] - start) * value)).join(",")})`;
}

const parse = (hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));

/** Entropy of probabilities, as a share of the largest possible. */
export function uncertainty(probabilities) {
  if (probabilities.length < 2) return 0;
  let total = 0;
  for (const p of probabilities) if (p > 0) total -= p * Math.log(p);
  return Math.min(1, total / Math.log(probabilities.length));
}
