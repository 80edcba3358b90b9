// Stepping through belief propagation: what the nodes believe after each sweep.

import { post } from "./api.js";

const PAUSE = 900; // milliseconds between sweeps while they play
const MOST = 12;
const $ = (id) => document.getElementById(id);

export class Sweeps {
  /** `request` gives the body of a request, `changed` shows another sweep, `attempt` says what went wrong. */
  constructor(request, changed, attempt) {
    this.request = request;
    this.changed = changed;
    this.forget();
    this.attempt = attempt;
    $("sweep").oninput = () => attempt(() => this.show(Number($("sweep").value)));
    $("sweep-next").onclick = () => attempt(() => this.step(1));
    $("sweep-back").onclick = () => attempt(() => this.step(-1));
    $("sweep-play").onclick = () => (this.timer ? this.stop() : attempt(() => this.play()));
  }

  /** Drop what was loaded: the graph or what is known has changed. */
  forget() {
    this.stop();
    this.sweeps = null;
    this.loading = null;
    this.place = null; // null: the result
    this.tell();
  }

  /** The sweep that is shown; null for the result. */
  current() {
    return this.place === null ? null : this.sweeps[this.place];
  }

  async load() {
    if (this.sweeps) return;
    const mine = (this.loading ??= post("/api/sweeps", { ...this.request(), max_sweeps: MOST }));
    const found = await mine.catch((error) => {
      this.forget();
      throw error;
    });
    if (this.loading === mine) [this.sweeps, this.edges] = [found.sweeps, found.edges];
  }

  async show(place) {
    await this.load();
    if (!this.sweeps) return;
    this.place = place >= this.sweeps.length ? null : Math.max(0, place);
    this.tell();
    this.changed();
  }

  async step(by) {
    await this.load();
    const now = this.place ?? this.sweeps.length;
    await this.show(now + by);
  }

  async play() {
    $("sweep-play").textContent = "Stop";
    this.timer = setTimeout(() => {}, 0);
    await this.show(this.place ?? 0);
    const next = async () => {
      if (!this.timer) return;
      await this.step(1);
      if (this.place === null) this.stop();
      else this.timer = setTimeout(next, PAUSE);
    };
    if (this.timer) this.timer = setTimeout(next, PAUSE);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    $("sweep-play").textContent = "Play sweeps";
  }

  tell() {
    const last = this.sweeps?.length ?? 1;
    $("sweep").max = String(last);
    $("sweep").value = String(this.place ?? last);
    const sweep = this.current();
    const text = !sweep
      ? "Result: joint labels"
      : sweep.number === 0
        ? "Before the first sweep: own evidence alone"
        : `After ${sweep.number} sweep${sweep.number > 1 ? "s" : ""}: ${sweep.converged ? "messages have settled" : "messages still change"}`;
    $("sweep-text").textContent = text;
    $("sweep").setAttribute("aria-valuetext", text);
    $("sweep-back").disabled = this.place === 0;
    $("sweep-next").disabled = this.place === null;
  }
}
