// Saving what is shown: a table of all nodes, and a picture of the drawings.

import { symbol } from "./shapes.js";

/** A table with one row for each node: joint label, probabilities, and what the parts say. */
export function saveCsv(view, filename) {
  const parts = view.partKeys.filter((key) => key !== view.whole);
  const head = ["node", "label", "probability", ...view.states.map((name) => `p(${name})`), ...parts, ...(view.truth ? ["true"] : []), "known"];
  const name = (state) => (state < 0 ? "" : view.states[state]);
  const rows = view.names.map((node, i) => {
    const { labels, marginals } = view.parts[view.whole];
    return [
      node, name(labels[i]), marginals[i][labels[i]], ...marginals[i], ...parts.map((key) => name(view.parts[key].labels[i])),
      ...(view.truth ? [name(view.truth[i])] : []), view.known.has(i) ? 1 : 0,
    ];
  });
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\n");
  save(new Blob([`${text}\n`], { type: "text/csv" }), filename);
}

const cell = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** One picture of all panels with their titles and the legend. */
export async function savePng(stage, view, filename) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const scale = 2;
  const shots = [];
  for (const { cy, title } of stage.panels.values()) {
    const blob = await cy.png({ output: "blob-promise", scale, bg: colour("--card"), maxWidth: 4000, maxHeight: 4000 });
    shots.push([await createImageBitmap(blob), title.textContent]);
  }
  const columns = shots.length > 1 ? 2 : 1;
  const width = Math.max(...shots.map(([image]) => image.width));
  const height = Math.max(...shots.map(([image]) => image.height)) + 34 * scale;
  const canvas = document.createElement("canvas");
  canvas.width = width * columns;
  canvas.height = height * Math.ceil(shots.length / columns) + 36 * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = colour("--card");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = colour("--ink");
  pen.font = `600 ${15 * scale}px system-ui, sans-serif`;
  shots.forEach(([image, title], i) => {
    const [x, y] = [(i % columns) * width, Math.floor(i / columns) * height];
    pen.fillText(title, x + 12 * scale, y + 22 * scale);
    pen.drawImage(image, x, y + 34 * scale);
  });
  drawLegend(pen, view, 12 * scale, canvas.height - 12 * scale, scale, colour("--ink"));
  save(await new Promise((done) => canvas.toBlob(done, "image/png")), filename);
}

function drawLegend(pen, view, x, y, scale, ink) {
  pen.font = `${12 * scale}px system-ui, sans-serif`;
  view.states.forEach((name, state) => {
    if (!view.counts[state] || x > pen.canvas.width - 60 * scale) return;
    const outline = symbol(state, view.colours).querySelector("path").getAttribute("d");
    pen.save();
    pen.translate(x, y - 11 * scale);
    pen.scale(0.62 * scale, 0.62 * scale);
    pen.fillStyle = view.colours[state];
    pen.fill(new Path2D(outline));
    pen.restore();
    pen.fillStyle = ink;
    pen.fillText(name, x + 17 * scale, y);
    x += pen.measureText(name).width + 34 * scale;
  });
}

function save(blob, filename) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
