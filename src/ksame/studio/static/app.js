// The first page, and which page is shown.
import { ask, busy, complain, count, el, fill, sure } from "./dom.js";
import { openProject } from "./project.js";

const main = document.getElementById("main");
const KINDS = {
  scene: ["Photographs and video", "Everyone gets another face, and everything else stays. Look at each person, correct, preview, release."],
  faces: ["A set of faces", "Portraits that are to be shared: groups of people share a face, with a bound that can be proved."],
  audit: ["Audit two folders", "Pictures before and after, from any tool: how many people does a recogniser still name?"],
};
let close = () => {};

async function route() {
  close();
  close = () => {};
  const [, id] = location.hash.match(/^#\/p\/([0-9a-f]{16})/) || [];
  try {
    if (id) close = await openProject(main, id);
    else await home();
  } catch (error) {
    document.title = "ksame studio";
    fill(main, el("h1", {}, "This cannot be shown"), el("p", {}, error.message), el("p", {}, el("a", { href: "#/" }, "All projects")));
  }
  main.focus({ preventScroll: true });
  document.body.dataset.ready = location.hash || "#/";
  performance.mark("ready");
}

async function home() {
  const projects = await ask("GET", "/projects");
  document.title = "ksame studio";
  fill(main,
    el("h1", {}, "What would you like to release?"),
    el("p.quiet", {}, "Publish pictures of people without publishing who they are. Press one of these to begin."),
    el("div.grid", { id: "kinds" }, Object.entries(KINDS).map(([kind, [title, text]]) =>
      el("button.choice", { type: "button", id: `new-${kind}`, click: (event) => busy(event.currentTarget, () => begin(kind, title)) },
        el("strong", {}, title), el("span", {}, text), el("span.begin", {}, "Begin")))),
    el("h2.spaced", { id: "projects-title" }, "Projects"),
    projects.length ? el("ul.plain.card", { "aria-labelledby": "projects-title" }, projects.map(line)) : el("p.quiet", {}, "None yet."));
}

function line(project) {
  const remove = el("button.bad", { type: "button", "aria-label": `Delete ${project.name}`, click: () => forget(project) }, "Delete");
  return el("li.row.between", {},
    el("span", {}, el("a", { href: `#/p/${project.id}` }, project.name),
      el("span.quiet.small", {}, ` ${KINDS[project.kind][0].toLowerCase()}, ${count(project.files.length, "file")}, ${new Date(project.created).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`)),
    remove);
}

async function begin(kind, title) {
  const now = new Date().toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const made = await ask("POST", "/projects", { name: `${title}, ${now}`, kind });
  location.hash = `#/p/${made.project.id}`;
}

async function forget(project) {
  if (!(await sure(`Delete ${project.name}?`, "Its originals, and everything that was made of them, are deleted from this machine.", "Delete"))) return;
  try {
    await ask("DELETE", `/projects/${project.id}`);
    await home();
  } catch (error) {
    complain(error);
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which page is shown
  main.focus();
});
addEventListener("hashchange", route);
route();
