// Elements, messages and requests: what all pages share.

/** Make an element. Properties that are functions become listeners; children may be text, elements, lists or null. */
export function el(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(name);
  made.classList.add(...classes);
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (key in made && key !== "list" && key !== "form") made[key] = value;
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Put children in the place of an element's own, and the focus where it was. */
export function fill(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.id : "";
  const open = new Set([...parent.querySelectorAll("details[open][id]")].map((each) => each.id));
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

let timer = 0;
export function say(text) {
  clearTimeout(timer);
  document.getElementById("status").textContent = text;
  timer = setTimeout(() => (document.getElementById("status").textContent = ""), 4000);
}

export function complain(error) {
  if (error.name === "AbortError") return;
  const close = el("button", { type: "button", click: () => fill(box) }, "Close");
  const box = document.getElementById("alert");
  fill(box, el("span", {}, error.message || String(error)), close);
}

/** Ask the server; what it refuses becomes an error with its words. */
export async function ask(method, path, body, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api${path}`, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      ...options,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The studio does not answer. Is ksame studio still running? Start it again; nothing is lost.");
  }
  if (!answer.ok) throw Object.assign(new Error(await reason(answer)), { status: answer.status });
  if (answer.status === 204) return null;
  const kind = answer.headers.get("content-type") || "";
  return kind.includes("json") ? answer.json() : answer.blob();
}

async function reason(answer) {
  try {
    const { detail } = await answer.json();
    return detail;
  } catch {
    return `The studio answered ${answer.status}.`;
  }
}

/** Upload one file, telling how much of it is sent. */
export function upload(path, file, onPart) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api${path}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.onprogress = (event) => onPart(event.loaded / Math.max(1, event.total));
    request.onerror = () => fail(new Error("The upload broke off. The file may be too large, or the studio has stopped."));
    request.onload = () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* no words */ }
      if (request.status < 300) done(answer);
      else fail(new Error(typeof answer.detail === "string" ? answer.detail : `The studio answered ${request.status}.`));
    };
    request.send(file);
  });
}

/** Run something that talks to the server: its buttons wait, and errors are shown. */
export async function busy(button, work) {
  if (button) button.disabled = true;
  try {
    return await work();
  } catch (error) {
    complain(error);
  } finally {
    if (button) button.disabled = false;
  }
}

/** Ask before something that cannot be undone. */
export function sure(title, text, word) {
  return new Promise((answer) => {
    const end = (value) => { box.close(); box.remove(); answer(value); };
    const box = el("dialog", { "aria-labelledby": "sure-title", cancel: () => end(false) },
      el("h2", { id: "sure-title" }, title), el("p", {}, text),
      el("div.row", {},
        el("button.bad", { type: "button", id: "sure-yes", click: () => end(true) }, word),
        el("button", { type: "button", click: () => end(false) }, "Leave it")));
    document.body.append(box);
    box.showModal();
  });
}

export function bytes(size) {
  const units = ["B", "kB", "MB", "GB"];
  const step = Math.min(3, Math.floor(Math.log10(Math.max(1, size)) / 3));
  return `${(size / 1000 ** step).toFixed(step && size / 1000 ** step < 10 ? 1 : 0)} ${units[step]}`;
}

export function count(number, thing) {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** The heading of a step. */
export function step(number, text) {
  return el("h2", {}, el("span.step", { "aria-hidden": "true" }, String(number)), text);
}

export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")}`;
}

export function field(label, control, hint) {
  const id = control.id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el("div.field", {}, el("label", { for: id }, label), control, hint ? el("p.small.quiet", { id: `${id}-hint` }, hint) : null);
}

export function choose(id, options, value, change) {
  const made = el("select", { id, change: () => change(made.value) },
    options.map(([name, words]) => el("option", { value: name, selected: name === value }, words)));
  return made;
}
