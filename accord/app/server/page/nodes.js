// The list of nodes: the way to every node by keyboard and search.

import { uncertainty } from "./shapes.js";
import { element } from "./stage.js";

const SHOWN = 200;
const $ = (id) => document.getElementById(id);

export class NodeList {
  /** @param pick called with the number of a node. */
  constructor(pick) {
    this.pick = pick;
    $("search").oninput = $("order").onchange = () => this.fill();
    $("search").addEventListener("keydown", (event) => event.key === "ArrowDown" && $("node-list").querySelector("button")?.focus());
    $("node-list").onkeydown = (event) => this.walk(event);
  }

  show(view, selected) {
    this.view = view;
    this.selected = selected;
    this.fill();
  }

  fill() {
    const view = this.view;
    if (!view) return;
    const wanted = $("search").value.trim().toLowerCase();
    let nodes = view.names.map((_, node) => node);
    if (wanted) nodes = nodes.filter((node) => view.names[node].toLowerCase().includes(wanted) || view.labelName(node).toLowerCase().includes(wanted));
    nodes = ordered(nodes, view, $("order").value);
    const entries = nodes.slice(0, SHOWN).map((node) => this.entry(node));
    if (nodes.length > SHOWN) entries.push(element("li", "soft", `and ${(nodes.length - SHOWN).toLocaleString()} more: search for them`));
    if (!nodes.length) entries.push(element("li", "soft", "no node"));
    $("node-list").replaceChildren(...entries);
  }

  entry(node) {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    button.dataset.node = String(node);
    button.setAttribute("aria-current", String(node === this.selected));
    const sure = Math.max(...this.view.marginals(node));
    button.append(element("span", "", this.view.names[node]), element("span", "", this.view.labelName(node)), element("span", "soft", `${Math.round(100 * sure)} %`));
    button.onclick = () => this.pick(node);
    item.append(button);
    return item;
  }

  /** Arrow keys move between the entries. */
  walk(event) {
    const item = event.target.closest("li");
    const next = event.key === "ArrowDown" ? item?.nextElementSibling : event.key === "ArrowUp" ? item?.previousElementSibling : null;
    if (!next) return;
    event.preventDefault();
    next.querySelector("button")?.focus();
  }

  mark(node) {
    this.selected = node;
    for (const button of $("node-list").querySelectorAll("button")) {
      const own = Number(button.dataset.node) === node;
      button.setAttribute("aria-current", String(own));
      if (own) button.scrollIntoView({ block: "nearest" });
    }
  }
}

function ordered(nodes, view, order) {
  if (order === "unsure") {
    const unsure = new Map(nodes.map((node) => [node, uncertainty(view.marginals(node))]));
    return nodes.sort((a, b) => unsure.get(b) - unsure.get(a));
  }
  if (order === "differ") return nodes.filter((node) => view.disagree(node));
  if (order === "wrong") return nodes.sort((a, b) => view.wrong(b) - view.wrong(a));
  return nodes;
}
