// The page: picks a graph, asks the server what each part of the model says, and shows it.

import { get, listen, post, upload } from "./api.js";
import { fillStates, showExplanation, showLegend, showNode } from "./details.js";
import { saveCsv, savePng } from "./exports.js";
import { NodeList } from "./nodes.js";
import { element, Stage } from "./stage.js";
import { Sweeps } from "./sweeps.js";
import { View } from "./view.js";

const LARGE = 300; // nodes; above, one drawing is clearer than four
const PHONE = 760; // pixels; one drawing at a time up to this width
const $ = (id) => document.getElementById(id);
let view, stage, sweeps, list;
let shown = null; // key of the only panel, or "all"
let selected = null;
let busy = 0;

async function begin() {
  listen((down) => down ? notify("The server does not answer. Trying again…", true) : clearTrouble(), askForToken);
  const model = await get("/api/model");
  view = new View(model);
  document.title = `Accord: ${model.name}`;
  $("model-name").textContent = `· ${model.name}`;
  stage = new Stage($("stage"), pick);
  sweeps = new Sweeps(() => view.request(), paint, attempt);
  list = new NodeList(pick);
  for (const id of ["forbid-a", "forbid-b"]) fillStates($(id), model.states);
  if (model.states.length > 1) $("forbid-b").value = "1";
  fillTasks(model.tasks);
  connect();
  const { graphs } = await get("/api/graphs");
  fillGraphs(graphs);
  if (graphs.length) await open(graphs[0]);
  else notify(`Upload a graph to label: ${model.formats.join(", ")}. It needs ${model.features} features a node.`);
}

function connect() {
  $("graph-picker").onchange = () => attempt(() => open(JSON.parse($("graph-picker").value)));
  $("upload-button").onclick = () => $("upload").click();
  $("upload").onchange = () => attempt(() => send([...$("upload").files]));
  document.body.ondragover = (event) => event.preventDefault();
  document.body.ondrop = (event) => {
    event.preventDefault();
    attempt(() => send([...event.dataTransfer.files]));
  };
  $("task").onchange = () => attempt(async () => {
    view.task = Number($("task").value);
    view.known.clear();
    view.answers = null;
    await ask();
  });
  for (const button of $("colourings").children) button.onclick = () => {
    view.colouring = button.dataset.colouring;
    for (const other of $("colourings").children) other.setAttribute("aria-pressed", String(other === button));
    paint();
  };
  $("fit").onclick = () => stage.fit();
  $("node-close").onclick = () => pick(null);
  $("clamp").onchange = () => attempt(() => clamp(selected, $("clamp").value));
  $("forbid-add").onclick = () => attempt(() => forbid(Number($("forbid-a").value), Number($("forbid-b").value)));
  $("forget").onclick = () => attempt(async () => {
    view.known.clear();
    view.forbidden = [];
    await ask();
  });
  $("export-csv").onclick = () => view.answers && saveCsv(view, `${fileName()}.csv`);
  $("export-png").onclick = () => view.answers && attempt(() => savePng(stage, view, `${fileName()}.png`));
  matchMedia("(prefers-color-scheme: dark)").onchange = () => (stage.restyle(), paint());
  document.addEventListener("keydown", (event) => event.key === "Escape" && pick(null));
}

/** Do something that may be refused, and say why it was. */
async function attempt(action) {
  document.body.classList.toggle("busy", ++busy > 0);
  try {
    await action();
  } catch (error) {
    notify(error.message, true);
    if (!error.status) console.error(error);
  } finally {
    document.body.classList.toggle("busy", --busy > 0);
  }
}

async function send(files) {
  $("upload").value = "";
  if (!files.length) return;
  const most = view.model.limits.megabytes;
  if (files.reduce((sum, file) => sum + file.size, 0) > most * 2 ** 20) throw new Error(`The files are larger than ${most} MB. Choose a smaller graph.`);
  const graph = await upload(files);
  graph.name = files[0].name;
  const option = new Option(graphTitle(graph), JSON.stringify(graph));
  $("graph-picker").prepend(option);
  $("graph-picker").value = option.value;
  await open(graph);
}

/** Show a graph. */
async function open(graph) {
  const drawing = await post("/api/draw", { graph: { id: graph.id } });
  sweeps.forget();
  view.start(graph, drawing);
  selected = null;
  shown = null;
  stage.clear();
  await ask();
}

/** Ask what the parts say, given what is known, and show it. */
async function ask() {
  const asked = view.request();
  const answers = await post("/api/answers", asked);
  if (JSON.stringify(asked) !== JSON.stringify(view.request())) return; // a newer question is on its way
  const first = view.answers === null;
  view.take(answers);
  sweeps.forget();
  if (first) {
    shown ??= view.names.length <= LARGE && innerWidth > PHONE && view.panels.length > 1 ? "all" : view.whole;
    showViews();
    rebuild();
  } else {
    paint();
  }
  list.show(view, selected);
  showKnown();
  tellChanges(first, answers.warnings);
  showNode(view, selected);
  if (selected !== null) await explain();
}

function rebuild() {
  stage.build(view.drawing, shown === "all" ? view.panels : [shown]);
  paint();
  stage.select(selected);
  stage.resize();
}

/** Colour every panel by what is to be seen now. */
function paint() {
  if (!view.answers) return;
  const sweep = sweeps.current();
  for (const key of stage.panels.keys()) {
    const part = key === "truth" ? { labels: view.truth, marginals: null } : view.parts[key];
    const moving = key === view.whole && sweep !== null;
    const marginals = moving ? sweep.marginals : part.marginals;
    const labels = moving ? sweep.marginals.map(mostLikely) : part.labels;
    const wrong = view.truth && key !== "truth" ? labels.filter((state, node) => view.truth[node] >= 0 && state !== view.truth[node]).length : 0;
    stage.paint(key, {
      labels,
      marginals,
      truth: key === "truth" ? null : view.truth,
      known: key === view.whole ? view.known : null,
      changed: key !== view.whole ? null : moving ? changedIn(sweep) : view.changed,
      states: view.states,
      colours: view.colours,
      colouring: view.colouring,
      heading: view.title(key),
      note: view.truth && key !== "truth" ? (wrong ? `${wrong} wrong` : "✓ all right") : moving ? "" : undefined,
      wrong: wrong > 0,
    });
  }
  stage.paintEdges(view.whole, sweep && changesOfDrawnEdges(sweep));
  showLegend(view, view.counts);
}

const mostLikely = (probabilities) => probabilities.indexOf(Math.max(...probabilities));

/** Nodes whose most likely state changed in a sweep. */
function changedIn(sweep) {
  const before = sweeps.sweeps[sweep.number - 1];
  if (!before) return null;
  return new Set(sweep.marginals.flatMap((row, node) => (mostLikely(row) !== mostLikely(before.marginals[node]) ? [node] : [])));
}

/** The drawing has the edges of the graph in their order, without those to nodes that are not drawn. */
function changesOfDrawnEdges(sweep) {
  if (view.drawing.shown.length === view.drawing.total) return sweep.message_change;
  const drawn = new Set(view.drawing.shown);
  const [sources, targets] = sweeps.edges;
  return sweep.message_change.filter((_, edge) => drawn.has(sources[edge]) && drawn.has(targets[edge]));
}

function pick(node) {
  if (!view.answers) return;
  selected = node;
  stage.select(node);
  list.mark(node);
  showNode(view, node);
  if (node !== null) attempt(explain);
}

async function explain() {
  const node = selected;
  $("node-words").textContent = "…";
  $("node-contributions").replaceChildren();
  $("against-row").hidden = true;
  const found = await post("/api/explain", { ...view.request(), node: view.names[node] });
  if (node === selected) showExplanation(view, found, pick, (name) => attempt(() => without(node, name)));
}

/** What the label would be without an edge. */
async function without(node, name) {
  const found = await post("/api/explain", { ...view.request(), node: view.names[node], without: name });
  const sure = (100 * found.probabilities[found.label]).toFixed(0);
  if (node === selected) $("what-if").textContent = `Without the edge to node ${name}: ${view.states[found.label]}, probability ${sure} %.`;
}

async function clamp(node, value) {
  if (value === "") view.known.delete(node);
  else view.known.set(node, Number(value));
  await change(() => (view.known.delete(node), ($("clamp").value = "")));
}

async function forbid(a, b) {
  const pair = [Math.min(a, b), Math.max(a, b)];
  if (view.forbidden.some(([c, d]) => c === pair[0] && d === pair[1])) return;
  view.forbidden = [...view.forbidden, pair];
  await change(() => (view.forbidden = view.forbidden.filter((other) => other !== pair)));
}

/** Ask again after a change; take it back if it is refused, because no labelling obeys it. */
async function change(undo) {
  try {
    await ask();
  } catch (error) {
    undo();
    showKnown();
    throw error;
  }
}

/** What is known, as a list from which it can be removed. */
function showKnown() {
  const chips = [...view.known].map(([node, state]) =>
    chip(`Node ${view.names[node]} is ${view.states[state]}`, () => clamp(node, "")));
  view.forbidden.forEach((pair) => {
    const [a, b] = pair.map((state) => view.states[state]);
    chips.push(chip(`${a} never beside ${b}`, async () => {
      view.forbidden = view.forbidden.filter((other) => other !== pair);
      await ask();
    }));
  });
  $("known-list").replaceChildren(...chips);
  $("known-hint").hidden = chips.length > 0;
  $("forget").hidden = chips.length === 0;
}

function chip(text, remove) {
  const item = element("li", "", text);
  const button = element("button", "", "✕");
  button.type = "button";
  button.setAttribute("aria-label", `Forget: ${text}`);
  button.onclick = () => attempt(remove);
  item.append(button);
  return item;
}

function tellChanges(first, warnings) {
  const hidden = view.drawing.total - view.drawing.shown.length;
  const sentences = [...warnings];
  if (first && hidden > 0) sentences.push(`The drawing shows ${view.drawing.shown.length.toLocaleString()} of ${view.drawing.total.toLocaleString()} nodes; labels and CSV have all.`);
  if (!first) {
    const others = [...view.changed].filter((node) => !view.known.has(node)).length;
    sentences.push(others === 0 ? "No other label changed." : `${others} other label${others > 1 ? "s" : ""} changed.`);
  }
  notify(sentences.join(" "), warnings.length > 0);
}

function showViews() {
  const buttons = [["all", "Side by side"], ...view.panels.map((key) => [key, view.title(key)])].map(([key, title]) => {
    const button = element("button", "", title);
    button.type = "button";
    button.dataset.view = key;
    button.setAttribute("aria-pressed", String(key === shown));
    button.onclick = () => {
      shown = key;
      showViews();
      rebuild();
    };
    return button;
  });
  $("views").replaceChildren(...buttons);
}

function fillGraphs(graphs) {
  $("graph-picker").replaceChildren(...graphs.map((graph) => new Option(graphTitle(graph), JSON.stringify(graph))));
}

const graphTitle = (graph) => `${graph.name} (${graph.nodes.toLocaleString()} nodes)`;

function fillTasks(tasks) {
  $("task-group").hidden = tasks.length < 2;
  $("task").replaceChildren(...tasks.map((name, task) => new Option(name, String(task))));
}

function notify(text, warn = false) {
  $("notice").hidden = !text;
  $("notice").textContent = text;
  $("notice").className = warn ? "warn" : "";
  $("notice").dataset.trouble = String(text.startsWith("The server does not answer"));
}

function clearTrouble() {
  if ($("notice").dataset.trouble === "true") notify("");
}

function askForToken() {
  const dialog = $("token-dialog");
  if (!dialog.open) dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done($("token").value.trim()), { once: true }));
}

const fileName = () => view.graph.name.replace(/\.[a-z]+$/i, "").replace(/[^\w-]+/g, "-");

window.accord = { get stage() { return stage; }, get view() { return view; } }; // for tests and the console
attempt(begin);
