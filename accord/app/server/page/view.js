// What the page knows about one graph: names, true labels, what each part of the model says, and what the user knows.

export class View {
  constructor(model) {
    this.model = model;
    this.states = model.states;
    this.colours = model.colours;
    this.colouring = "label";
    this.task = 0;
    this.start(null, null);
  }

  /** Begin with a graph: its entry in the list, and its drawing. */
  start(graph, drawing) {
    this.graph = graph;
    this.drawing = drawing;
    this.names = drawing?.names ?? [];
    this.known = new Map(); // node -> state
    this.forbidden = []; // pairs of states
    this.answers = null;
    this.changed = null;
  }

  get truth() {
    return this.answers?.truth ?? null;
  }

  get parts() {
    return this.answers?.parts ?? {};
  }

  get partKeys() {
    return Object.keys(this.parts);
  }

  /** The part that is the whole model. */
  get whole() {
    return this.partKeys.at(-1);
  }

  /** How often each joint label occurs. */
  get counts() {
    const counts = this.states.map(() => 0);
    for (const state of this.parts[this.whole]?.labels ?? []) counts[state]++;
    return counts;
  }

  /** Take over new answers; remember which joint labels changed. */
  take(answers) {
    const before = this.answers ? this.parts[this.whole].labels : null;
    this.answers = answers;
    const labels = this.parts[this.whole].labels;
    const changed = before ? labels.flatMap((state, node) => (state !== before[node] ? [node] : [])) : [];
    this.changed = new Set(changed);
  }

  title(key) {
    if (key === "truth") return "True labels";
    if (key === this.whole) return this.partKeys.length > 1 ? "Joint labels" : "Labels";
    return { gnn: "Node network", edge: "Edge network" }[key] ?? key;
  }

  /** What to draw: true labels if there are any, then the parts. */
  get panels() {
    return [...(this.truth ? ["truth"] : []), ...this.partKeys];
  }

  /** What each panel says about a node, as titles and states. */
  said(node) {
    const rows = this.panels.map((key) => [this.title(key), key === "truth" ? this.truth[node] : this.parts[key].labels[node]]);
    return rows;
  }

  marginals(node) {
    return this.parts[this.whole].marginals[node];
  }

  labelName(node) {
    return this.states[this.parts[this.whole].labels[node]];
  }

  disagree(node) {
    return new Set(this.partKeys.map((key) => this.parts[key].labels[node])).size > 1;
  }

  wrong(node) {
    return Number(Boolean(this.truth && this.truth[node] >= 0 && this.truth[node] !== this.parts[this.whole].labels[node]));
  }

  /** The body of a request about this graph; nodes go by name. */
  request() {
    return {
      graph: { id: this.graph.id },
      task: this.task,
      known: Object.fromEntries([...this.known].map(([node, state]) => [this.names[node], state])),
      forbid: this.forbidden,
    };
  }
}
