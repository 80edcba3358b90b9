// The drawings: one panel for each part of the model, with the same places, moved together.

import cytoscape from "./vendor/cytoscape.esm.min.mjs";
import { colourOf, ramp, shapeOf, uncertainty } from "./shapes.js";

const SPACE = 38; // pixels for a node, when the drawing is made
const DENSE = 22; // the same in a large graph, where nodes would be too small to see
const REACH = 22; // pixels around the middle of a node that belong to it
const LARGE = 800; // nodes; more are drawn plainly, and edges are left out while the drawing moves
const CLOSEST = 2; // zoom of a small graph that is fitted
const LETTERS = 3; // longer names do not fit into a node

export class Stage {
  /** @param place the element for the panels. @param picked called with the number of a node, or null. */
  constructor(place, picked) {
    this.place = place;
    this.picked = picked;
    this.panels = new Map(); // key -> {cy, title, canvas, nodes, edges}
    this.moved = false; // by the user: a panel of another size is then not fitted anew
    new ResizeObserver(() => this.resize()).observe(place);
  }

  resize() {
    for (const { cy } of this.panels.values()) cy.resize();
    if (!this.moved) this.fit();
  }

  /** Draw a graph anew: `drawing` as /api/draw gives it, one panel for each of `keys`. */
  build(drawing, keys) {
    const before = this.viewport();
    const sameGraph = this.drawing === drawing;
    this.clear();
    this.drawing = drawing;
    this.large = drawing.shown.length > LARGE;
    this.place.classList.toggle("many", keys.length > 1);
    const elements = this.elements(drawing);
    for (const key of keys) this.panels.set(key, this.panel(key, elements));
    if (drawing.images) this.showImages(drawing);
    if (sameGraph && before && this.moved) this.move(before);
    else this.fit();
  }

  /** Show what is on the nodes beside their true labels. */
  showImages(drawing) {
    const panel = this.panels.get("truth");
    panel?.cy.batch(() => panel.nodes.forEach((drawn, i) => drawn.data("image", picture(drawing.images[i]))));
  }

  clear() {
    for (const { cy } of this.panels.values()) cy.destroy();
    this.panels.clear();
    this.place.replaceChildren();
  }

  /** The node at a place of the drawing, or null. Cytoscape's own search takes 100 ms for 5,000 nodes. */
  nearest({ x, y }) {
    let [best, least] = [null, REACH ** 2];
    for (let i = 0; i < this.drawing.shown.length; i++) {
      const distance = (this.drawing.x[i] * this.size - x) ** 2 + (this.drawing.y[i] * this.size + y) ** 2;
      if (distance < least) [best, least] = [this.drawing.shown[i], distance];
    }
    return best;
  }

  elements(drawing) {
    const size = Math.sqrt(drawing.shown.length) * (drawing.shown.length > LARGE ? DENSE : SPACE);
    this.size = size;
    const nodes = drawing.shown.map((node, i) => ({
      data: { id: `n${node}`, node, colour: "#999999", shape: "ellipse", text: "", ring: 0, dark: 0, changed: 0 },
      position: { x: drawing.x[i] * size, y: -drawing.y[i] * size },
    }));
    const [sources, targets] = drawing.edges;
    const edges = sources.map((source, i) => ({
      data: { id: `e${i}`, source: `n${drawing.shown[source]}`, target: `n${drawing.shown[targets[i]]}`, change: 0 },
    }));
    return [...nodes, ...edges];
  }

  panel(key, elements) {
    const box = element("div", "panel");
    const title = element("h2");
    const canvas = element("div", "canvas");
    canvas.dataset.part = key;
    canvas.setAttribute("role", "img");
    box.append(title, canvas);
    this.place.append(box);
    const cy = cytoscape({
      container: canvas,
      elements: structuredClone(elements),
      layout: { name: "preset", fit: false },
      style: look(this.large),
      minZoom: 0.01,
      maxZoom: 6,
      boxSelectionEnabled: false,
      autoungrabify: true,
      autounselectify: true,
      selectionType: "single",
      textureOnViewport: this.large,
      hideEdgesOnViewport: this.large,
      pixelRatio: this.large ? 1 : "auto",
    });
    cy.on("tap", (event) => this.picked(this.nearest(event.position)));
    cy.on("mousemove", (event) => (canvas.style.cursor = this.nearest(event.position) === null ? "" : "pointer"));
    cy.on("viewport", () => this.follow(cy));
    cy.on("dragpan pinchzoom scrollzoom", () => (this.moved = true));
    return { cy, title, canvas, nodes: cy.nodes().toArray(), edges: cy.edges().toArray() };
  }

  /** Move the other panels as one was moved. */
  follow(leader) {
    if (this.following) return;
    this.following = true;
    for (const { cy } of this.panels.values()) if (cy !== leader) cy.viewport({ zoom: leader.zoom(), pan: leader.pan() });
    this.following = false;
  }

  viewport() {
    const first = this.panels.values().next().value;
    return first && { zoom: first.cy.zoom(), pan: { ...first.cy.pan() }, width: first.cy.width(), height: first.cy.height() };
  }

  /** Keep the middle of an earlier view in the middle, in panels that may have another size. */
  move(before) {
    const first = this.panels.values().next().value;
    if (first.cy.width() !== before.width || first.cy.height() !== before.height) this.fit();
    else first.cy.viewport(before);
  }

  fit() {
    this.moved = false;
    const first = this.panels.values().next().value;
    if (!first) return;
    first.cy.fit(undefined, 26);
    if (first.cy.zoom() > CLOSEST) {
      first.cy.zoom(CLOSEST);
      first.cy.center();
    }
  }

  /** Colour one panel. `labels` and `marginals` by node; `states` and `colours` of the model. */
  paint(key, { labels, marginals, truth, known, changed, states, colours, colouring, heading, note, wrong }) {
    const panel = this.panels.get(key);
    if (!panel) return;
    const shades = Array.from({ length: 65 }, (_, i) => ramp(i / 64));
    panel.cy.batch(() => {
      for (const drawn of panel.nodes) {
        const node = drawn.data("node");
        const state = labels[node];
        const unsure = marginals ? uncertainty(marginals[node]) : 0;
        const name = state < 0 ? "?" : states[state];
        const shaded = colouring === "uncertainty" && marginals;
        change(drawn, {
          colour: shaded ? shades[Math.round(64 * unsure)] : colourOf(state, colours),
          dark: Number(Boolean(shaded) && unsure > 0.55),
          shape: shapeOf(state),
          text: name.length <= LETTERS ? name : `${name.slice(0, LETTERS - 1)}…`,
          ring: known?.has(node) ? 2 : truth && truth[node] >= 0 && truth[node] !== state ? 1 : 0,
          changed: Number(Boolean(changed?.has(node))),
        });
      }
    });
    panel.title.replaceChildren(heading);
    if (note) {
      const text = element("span", wrong ? "bad" : "");
      text.textContent = `  ${note}`;
      panel.title.append(text);
    }
    panel.canvas.setAttribute("aria-label", `${heading}. ${note ?? ""} The list of nodes has the same in words.`);
  }

  /** Show along which edges messages changed; null shows none. */
  paintEdges(key, changes) {
    const panel = this.panels.get(key);
    if (!panel) return;
    panel.cy.batch(() => panel.edges.forEach((edge, i) => change(edge, { change: Math.round(100 * (changes?.[i] ?? 0)) / 100 })));
  }

  /** Mark a node and show it. */
  select(node) {
    for (const panel of this.panels.values()) {
      const { cy } = panel;
      cy.batch(() => {
        panel.marked?.removeClass("picked near");
        const drawn = node === null ? cy.collection() : cy.getElementById(`n${node}`);
        panel.marked = drawn.union(drawn.connectedEdges());
        drawn.addClass("picked");
        drawn.connectedEdges().addClass("near");
      });
      const place = panel.marked.nodes()[0]?.renderedPosition();
      if (place && (place.x < 0 || place.y < 0 || place.x > cy.width() || place.y > cy.height())) {
        cy.center(panel.marked.nodes());
      }
    }
  }

  restyle() {
    for (const { cy } of this.panels.values()) cy.style(look(this.large)).update();
  }
}

/** Set only what differs: every value that is set costs a new style. */
function change(drawn, values) {
  const before = drawn.data();
  const differing = Object.entries(values).filter(([name, value]) => before[name] !== value);
  if (differing.length) drawn.data(Object.fromEntries(differing));
}

/** The style sheet of the drawings, in the colours of the page. */
function look(large) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return [
    {
      selector: "node",
      style: {
        width: 30, height: 30, shape: "data(shape)", "background-color": "data(colour)", label: "data(text)",
        color: colour("--node-ink"), "font-size": 13, "font-weight": 600, "text-valign": "center", "text-halign": "center",
        "min-zoomed-font-size": 8, events: "no", "border-width": 1, "border-color": colour("--card"),
      },
    },
    {
      selector: "node[image]",
      style: {
        "background-image": "data(image)", "background-fit": "cover", "background-image-smoothing": "no", shape: "rectangle",
        width: 34, height: 34, "border-width": 3, "border-color": "data(colour)", color: colour("--ink"),
        "text-valign": "top", "text-halign": "right", "text-margin-x": 1, "text-margin-y": 6,
      },
    },
    { selector: "node[dark = 1]", style: { color: colour("--card") } },
    { selector: "node[ring = 1]", style: { "border-width": 3.5, "border-color": colour("--wrong"), "border-style": "dashed" } },
    { selector: "node[ring = 2]", style: { "border-width": 6, "border-color": colour("--ink"), "border-style": "double" } },
    { selector: "node[changed = 1]", style: { "underlay-color": colour("--accent"), "underlay-opacity": 0.35, "underlay-padding": 9, "underlay-shape": "ellipse" } },
    { selector: "node.picked", style: { "underlay-color": colour("--accent"), "underlay-opacity": 0.7, "underlay-padding": 8, "underlay-shape": "ellipse", width: 36, height: 36, "z-index": 9 } },
    { selector: "edge", style: { width: large ? 1 : 2, "line-color": colour(large ? "--line" : "--edge"), "curve-style": "haystack", "haystack-radius": 0, events: "no" } },
    { selector: "edge[change > 0.01]", style: { width: "mapData(change, 0, 0.5, 2, 11)", "line-color": colour("--for") } },
    { selector: "edge.near", style: { "line-color": colour("--accent"), width: 3 } },
  ];
}

/** Pixels of a square image as an address that a browser can show. */
export function picture(pixels) {
  const width = Math.round(Math.sqrt(pixels.length));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = width;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, width);
  pixels.forEach((ink, i) => image.data.set([...Array(3).fill(Math.round(255 * (1 - ink))), 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
