// Requests to the server. A server that is busy, or was restarted, is asked again: the page keeps what it needs.

const TRIES = 300; // one a second
let token = readToken();
let onTrouble = () => {};
let askForToken = async () => null;
const uploads = new Map(); // id -> the files, to send them again to a server that has forgotten them

export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** What to call while the server does not answer (true) and when it does again (false), and to get a token. */
export function listen(trouble, askToken) {
  onTrouble = trouble;
  askForToken = askToken;
}

export const get = (path) => request(path, { method: "GET" });

export async function post(path, body) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    return await request(path, options);
  } catch (error) {
    const files = uploads.get(body.graph?.id);
    if (error.code !== "unknown_graph" || !files) throw error;
    await upload(files);
    return request(path, options);
  }
}

/** Send the files of one graph; returns its id and size. */
export async function upload(files) {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  const found = await request("/api/graphs", { method: "POST", body: form });
  uploads.set(found.id, files);
  return found;
}

async function request(path, options) {
  for (let attempt = 1; ; attempt++) {
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (attempt >= TRIES) throw new Refusal(0, "no_answer", "The server does not answer. Is it still running?");
      onTrouble(true);
      await sleep(1000);
      continue;
    }
    onTrouble(false);
    if (response.status === 401) {
      token = await askForToken();
      sessionStorage.setItem("accord-token", token);
      continue;
    }
    if (response.status === 503 && attempt < TRIES) {
      await sleep(1000 * Number(response.headers.get("Retry-After") ?? 1));
      continue;
    }
    const answer = await response.json();
    if (!response.ok) throw new Refusal(response.status, answer.error.code, answer.error.message);
    return answer;
  }
}

/** The token in the address (after #, so that browsers never send it), or of this tab's earlier visit. */
function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("accord-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem("accord-token");
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
