// The selected node: what each part says, its probabilities, and why it has its label.

import { symbol, colourOf } from "./shapes.js";
import { element, picture } from "./stage.js";

const SHOWN = 12; // contributions; the rest are added up
const $ = (id) => document.getElementById(id);

/** Fill the card of a node with what is known without asking the server. */
export function showNode(view, node) {
  $("node-card").hidden = node === null;
  if (node === null) return;
  $("node-title").textContent = `Node ${view.names[node]}`;
  const said = element("dl", "said");
  for (const [title, state] of view.said(node)) {
    said.append(element("dt", "", title), element("dd", "", state < 0 ? "unknown" : view.states[state]));
  }
  $("node-labels").replaceChildren(said);
  const place = view.drawing.images ? view.drawing.shown.indexOf(node) : -1;
  if (place >= 0) {
    const image = element("img", "picture");
    image.src = picture(view.drawing.images[place]);
    image.alt = "What the networks see";
    $("node-labels").append(image);
  }
  fillStates($("clamp"), view.states, "not known");
  $("clamp").value = view.known.has(node) ? String(view.known.get(node)) : "";
  showMarginals(view, view.marginals(node));
}

/** Bars of probabilities, the largest first. */
function showMarginals(view, probabilities) {
  const order = probabilities.map((p, state) => [p, state]).sort((a, b) => b[0] - a[0]);
  const rows = order.filter(([p], place) => place < 6 && (p >= 0.0005 || place < 2));
  $("node-marginals").replaceChildren(
    ...rows.flatMap(([p, state]) => [
      nameCell(view.states[state]),
      bar(0, p, colourOf(state, view.colours)),
      element("span", "number", `${(100 * p).toFixed(1)} %`),
    ]),
  );
}

/** Fill in the explanation. `pick` is called with the number of a neighbour, `drop` to ask for a label without it. */
export function showExplanation(view, explanation, pick, drop) {
  $("node-words").replaceChildren(...sentences(view, explanation).map((sentence) => element("p", "", sentence)));
  $("what-if").textContent = "";
  const others = view.states.map((_, state) => state).filter((state) => state !== explanation.label);
  const other = explanation.rival ?? others[0];
  $("against-row").hidden = explanation.rival === null;
  $("node-contributions").replaceChildren();
  if (explanation.rival === null) return;
  $("against-text").textContent = `What speaks for ${view.states[explanation.label]} rather than`;
  const choice = $("against");
  fillStates(choice, view.states);
  choice.querySelector(`option[value="${explanation.label}"]`).remove();
  choice.value = String(other);
  const draw = () => showContributions(explanation, Number(choice.value), pick, drop);
  choice.onchange = draw;
  draw();
}

/** The explanation in a few sentences. */
function sentences(view, explanation) {
  const name = (state) => view.states[state];
  const percent = (p) => `${(100 * p).toFixed(p > 0.995 || p < 0.005 ? 1 : 0)}\u00a0%`;
  const { label, rival, messages, probabilities } = explanation;
  const found = [`Label ${name(label)}, probability ${percent(probabilities[label])}.`];
  if (rival === null) return [...found, "No other label is possible, given what is known."];
  const own = softmax(explanation.evidence);
  const alone = own.indexOf(Math.max(...own));
  const lead = (values) => (values[label] ?? -Infinity) - (values[rival] ?? -Infinity);
  found.push(`By its own evidence alone it would be ${name(alone)} (${percent(own[alone])}).`);
  const strongest = [...messages].sort((a, b) => Math.abs(lead(b.message)) - Math.abs(lead(a.message)))[0];
  const total = messages.reduce((sum, { message }) => sum + lead(message), 0);
  if (messages.length) {
    const most = messages.length > 1 ? `, most of all node\u00a0${strongest.name}` : "";
    const word = Math.abs(total) < 0.05 ? "hardly change that" : total > 0 ? `speak for ${name(label)}` : `speak for ${name(rival)} instead`;
    found.push(`Its neighbours ${word}${Math.abs(total) < 0.05 ? "" : most}.`);
  } else found.push("It has no neighbours.");
  if (lead(explanation.log_belief) < 0) found.push(`By itself, ${name(rival)} is more likely here; ${name(label)} fits better into the labels of the graph.`);
  const far = explanation.paths.find(({ nodes, nats }) => nodes.length > 2 && Math.abs(nats) >= 0.05);
  if (far) found.push(`From farther away: nodes ${far.nodes.join(" → ")} (${signed(far.nats)}).`);
  if (!explanation.converged) found.push("Belief propagation did not converge; the numbers are rough.");
  return found;
}

function softmax(logs) {
  const values = logs.map((log) => log ?? -Infinity);
  const top = Math.max(...values);
  const parts = values.map((value) => Math.exp(value - top));
  const sum = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / sum);
}

const signed = (value) => `${value > -0.005 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;

/** Differences of evidence and messages between the label and another state, in nats. */
function showContributions(explanation, other, pick, drop) {
  const difference = (values) => {
    const [own, against] = [values[explanation.label], values[other]];
    if (own === null && against === null) return 0;
    return own === null ? -Infinity : against === null ? Infinity : own - against;
  };
  const rows = explanation.messages.map(({ node, name, message }) => [difference(message), name, node]);
  rows.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
  const rest = rows.splice(SHOWN);
  const all = [[difference(explanation.evidence), "its own evidence", null], ...rows];
  if (rest.length) all.push([rest.reduce((sum, [value]) => sum + value, 0), `${rest.length} more neighbours`, null]);
  const largest = Math.max(1e-9, ...all.map(([value]) => Math.abs(value)).filter(Number.isFinite));
  $("node-contributions").replaceChildren(
    ...all.flatMap(([value, name, node]) => {
      const cell = nameCell(node === null ? name : `node ${name}`);
      if (node !== null) {
        const link = element("button", "name", `node ${name}`);
        link.type = "button";
        link.onclick = () => pick(node);
        cell.replaceChildren(link);
      }
      const share = Math.max(-1, Math.min(1, value / largest));
      const colour = value >= 0 ? "var(--for)" : "var(--against)";
      const text = Number.isFinite(value) ? signed(value) : value > 0 ? "rules out" : "ruled out";
      const number = element("span", "number", text);
      if (node !== null) {
        const scissors = element("button", "drop", "✕");
        scissors.type = "button";
        scissors.title = `What if there were no edge to node ${name}?`;
        scissors.setAttribute("aria-label", scissors.title);
        scissors.onclick = () => drop(name);
        number.append(scissors);
      }
      return [cell, bar(share < 0 ? 0.5 + share / 2 : 0.5, Math.abs(share) / 2, colour, true), number];
    }),
  );
}

export function fillStates(select, states, empty = null) {
  const options = states.map((name, state) => new Option(name, String(state)));
  select.replaceChildren(...(empty === null ? [] : [new Option(empty, "")]), ...options);
}

function nameCell(text) {
  const cell = element("span", "name", text);
  cell.title = text;
  return cell;
}

/** A bar from `start`, both as shares of the width. */
function bar(start, share, colour, centred = false) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const add = (x, width, fill) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x, width, y: 0, height: 10, fill })) rect.setAttribute(name, value);
    svg.append(rect);
  };
  add(0, 100, "var(--page)");
  add(100 * start, Math.max(0.6, 100 * share), colour);
  if (centred) add(49.8, 0.4, "var(--soft)");
  return svg;
}

/** The legend: symbols with names and counts, or the scale of uncertainty. */
export function showLegend(view, counts) {
  const parts = [];
  if (view.colouring === "uncertainty") parts.push(element("span", "", "sure"), element("span", "ramp"), element("span", "", "unsure"));
  view.states.forEach((name, state) => {
    if (!counts[state]) return;
    const entry = element("span");
    entry.append(symbol(state, view.colouring === "uncertainty" ? view.states.map(() => "#8a8f98") : view.colours), `${name} (${counts[state]})`);
    parts.push(entry);
  });
  if (view.truth) parts.push(element("span", "soft", "dashed ring: wrong"));
  if (view.known.size) parts.push(element("span", "soft", "double ring: known"));
  $("legend").replaceChildren(...parts);
}
