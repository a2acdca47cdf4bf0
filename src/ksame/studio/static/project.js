// A project: its files, its settings, its jobs. What only photographs and video have is in scene.js.
import { ask, busy, bytes, complain, count, el, fill, say, step, sure, upload } from "./dom.js";
import { jobCard, showProgress, start } from "./jobs.js";
import { settingsCard } from "./settings.js";
import { peopleCard, previewCard } from "./scene.js";

const ZONES = {
  scene: [["media", "Photographs or video", "Drop photographs or recordings here, or choose them.", false]],
  faces: [
    ["faces", "Pictures of faces", "Drop a folder here, or choose it. Sub-folders say who is who, or a labels.csv with the columns file and subject.", true],
    ["labels", "Labels (optional)", "A labels.csv with the columns file, subject, and labels such as gender.", false],
  ],
  audit: [
    ["originals", "Pictures before", "Drop the folder of originals here, or choose it.", true],
    ["released", "Pictures after", "Drop the folder of released pictures here, or choose it. Files of one name belong together.", true],
  ],
};
export async function openProject(main, id) {
  const [choices, view] = await Promise.all([ask("GET", "/choices"), ask("GET", `/projects/${id}`)]);
  const page = { id, choices, view, people: [], uploading: null, alive: true, path: `/projects/${id}` };
  const { kind } = view.project;
  const cards = Object.fromEntries(["head", "files", "people", "settings", "preview", "run", "end"].map((name) => [name, el("section", { id: name })]));
  const shown = kind === "scene" ? Object.keys(cards) : ["head", "files", "settings", "run", "end"];
  fill(main, shown.map((name) => cards[name]));

  page.running = () => page.view.jobs.find((job) => job.state === "running");
  page.draw = (name) => fill(cards[name], DRAW[name](page));
  page.drawAll = () => shown.forEach(page.draw);
  // One change after the other, each made of what the last has left. A job waits for them, and does not begin where one fails.
  page.changing = null;
  page.change = (make) => {
    const made = Promise.resolve(page.changing).catch(() => {}).then(async () => page.take(await ask("PATCH", page.path, make(page.view.project))));
    const end = () => { if (page.changing === made) page.changing = null; };
    page.changing = made;
    made.then(end, end);
    return made;
  };
  page.take = async (next) => {
    const last = page.view;
    page.view = next;
    const differ = (...keys) => keys.some((key) => JSON.stringify(key(last)) !== JSON.stringify(key(next)));
    const jobs = (each) => each.jobs.map((job) => [job.number, job.state]);
    const tracks = (each) => [each.found, each.undo, each.project.files];
    if (differ(tracks, jobs) && kind === "scene") await readPeople(page);
    if (differ((each) => each.project.files, jobs)) page.draw("files");
    if (differ((each) => each.project.name, tracks, jobs)) page.draw("head");
    const still = (each) => each.jobs.map(({ progress, ...job }) => job);
    const finding = (each) => still(each).filter((job) => job.action === "find");
    if (kind === "scene" && differ(tracks, jobs, finding, (each) => each.project.wishes)) page.draw("people");
    if (differ((each) => each.project.settings, (each) => each.project.files, jobs)) page.draw("settings");
    if (kind === "scene" && differ(tracks, jobs, (each) => [each.project.settings, each.project.wishes, each.project.another])) page.stale?.();
    if (differ(still, tracks)) page.draw("run");
    next.jobs.filter((job) => job.state === "running").forEach(showProgress);
  };
  page.refresh = async () => page.take(await ask("GET", page.path));

  if (kind === "scene") await readPeople(page);
  page.drawAll();
  const poll = async () => {
    while (page.alive) {
      await new Promise((wake) => setTimeout(wake, page.running() ? 500 : 3000));
      if (!page.alive || document.hidden || page.uploading) continue;
      try {
        await page.refresh();
        page.lost = false;
      } catch (error) {
        if (!page.lost && page.alive) complain(error);
        page.lost = true;
      }
    }
  };
  poll();
  return () => { page.alive = false; };
}

async function readPeople(page) {
  const looking = page.running()?.action === "find";
  page.people = page.view.found && !looking ? await ask("GET", `${page.path}/people`) : [];
}

const DRAW = { head: headCard, files: filesCard, people: peopleCard, settings: settingsCard, preview: previewCard, run: runCard, end: endCard };

function headCard(page) {
  const { project } = page.view;
  document.title = `${project.name} – ksame studio`;
  const name = el("input", { type: "text", id: "name", value: project.name, maxLength: 200, "aria-label": "Name of the project",
    change: () => name.value.trim() && page.change(() => ({ name: name.value.trim() })).catch(complain) });
  return [el("p", {}, el("a", { href: "#/" }, "All projects")),
    el("h1", {}, project.name),
    el("p.next", { id: "next" }, el("strong", {}, "Next: "), next(page)),
    el("details", { id: "rename" }, el("summary", {}, "Rename"), name),
    el("p.quiet.small", {}, `Kept in ${page.view.folder}`)];
}

/** What to do now, for somebody who is here for the first time. */
function next(page) {
  const { project: { kind, files }, found, jobs } = page.view;
  const has = (role) => files.some((file) => file.role === role);
  const job = page.running();
  if (job) return job.action === "find" ? "wait until everybody is found." : "wait, or close this page and come back: the work goes on.";
  if ((found || kind !== "scene") && jobs.some(({ action, state }) => action === "run" && ["done", "withheld"].includes(state))) return kind === "audit" ? "open the report, at the end of this page." : "look at what was made, and download what is to be published, at the end of this page.";
  if (kind === "audit" && !(has("originals") && has("released"))) return `choose the folder of pictures ${has("originals") ? "after" : "before"} (step 1).`;
  if (kind === "audit") return "press Audit (step 3).";
  if (!files.length) return kind === "scene" ? "choose photographs or recordings (step 1)." : "choose a folder of portraits (step 1).";
  if (kind === "faces") return "choose how many people share a face (step 2), then press Release (step 3).";
  return found ? "say what becomes of each person (step 2), look at a frame before and after (step 4), then press Release (step 5)." : "press Look for people (step 1).";
}

function filesCard(page) {
  const { project } = page.view;
  const waits = Boolean(page.running());
  return el("div.card", {}, step(1, "Files"),
    el("div.grid", {}, ZONES[project.kind].map((zone) => dropZone(page, zone, waits))),
    el("p.small", { id: "uploading", "aria-live": "polite" }, page.uploading || ""),
    el("div", { id: "upload-errors" }),
    fileList(page, waits),
    project.kind === "scene" ? el("div.row", {}, findButton(page, waits)) : null);
}

function findButton(page, waits) {
  const again = page.view.found;
  const none = !page.view.project.files.length;
  return [el(again || none ? "button" : "button.main", { type: "button", id: "find", disabled: waits || none,
    click: (event) => busy(event.currentTarget, async () => {
      if (again && page.view.undo && !(await sure("Look again?", "Your corrections are forgotten.", "Look again"))) return;
      await start(page, "find");
    }) }, again ? "Look for people again" : "Look for people"),
  none ? el("span.quiet.small", {}, "Add files first.") : null];
}

function dropZone(page, [role, label, text, folder], waits) {
  const input = el("input", { type: "file", id: `input-${role}`, multiple: role !== "labels", hidden: true, webkitdirectory: folder,
    accept: role === "labels" ? ".csv" : null, change: () => send(page, role, [...input.files].map((file) => [file.webkitRelativePath || file.name, file])) });
  const zone = el("div.drop", {
    dragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
    dragleave: () => zone.classList.remove("over"),
    drop: async (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (!waits) send(page, role, await dropped(event.dataTransfer));
    },
  }, el("h3", {}, label), el("p.quiet.small", {}, text), input,
  el(page.view.project.files.some((file) => file.role === role) || role === "labels" ? "button" : "button.main", { type: "button", id: `choose-${role}`, disabled: waits, click: () => input.click() }, folder ? "Choose a folder" : role === "labels" ? "Choose a file" : "Choose files"),
  el("p.quiet.small", {}, `At most ${bytes(page.choices.max_upload)} each.`));
  return zone;
}

/** All files that were dropped, those in folders too. */
async function dropped(data) {
  const found = [];
  const walk = async (entry, above) => {
    const name = above ? `${above}/${entry.name}` : entry.name;
    if (entry.isFile) found.push([name, await new Promise((done, fail) => entry.file(done, fail))]);
    else {
      const reader = entry.createReader();
      for (;;) {
        const part = await new Promise((done, fail) => reader.readEntries(done, fail));
        if (!part.length) break;
        for (const each of part) await walk(each, name);
      }
    }
  };
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  for (const entry of entries) await walk(entry, "");
  return entries.length ? found : [...data.files].map((file) => [file.name, file]);
}

/** Other files mean looking for people again: ask where that would forget corrections. */
async function mayForget(page) {
  const made = page.view.undo || Object.keys(page.view.project.wishes).length;
  return !made || sure("Change the files?", "People are looked for again then, and your corrections and choices are forgotten.", "Change them");
}

async function send(page, role, files) {
  const errors = [];
  if (!files.length || !(await mayForget(page))) return;
  files.sort(([a], [b]) => (a < b ? -1 : 1));
  const wanted = files.filter(([name]) => !name.split("/").pop().startsWith("."));
  for (const [index, [name, file]] of wanted.entries()) {
    const tell = (share) => {
      page.uploading = `Uploading ${index + 1} of ${wanted.length}: ${name}, ${Math.round(100 * share)} %`;
      const line = document.getElementById("uploading");
      if (line) line.textContent = page.uploading;
    };
    tell(0);
    const table = role === "faces" && name.toLowerCase().endsWith("labels.csv");
    try {
      if (file.size > page.choices.max_upload) throw new Error(`${name}: too large. At most ${bytes(page.choices.max_upload)} can be sent.`);
      await upload(`${page.path}/files?role=${table ? "labels" : role}&name=${encodeURIComponent(name)}`, file, tell);
    } catch (error) {
      errors.push(error.message);
    }
  }
  page.uploading = null;
  await page.refresh().catch(complain);
  page.draw("files");
  if (errors.length) {
    fill(document.getElementById("upload-errors"), el("div.note.bad", { role: "alert" }, el("p", {}, `${errors.length} of ${count(wanted.length, "file")} ${errors.length === 1 ? "was" : "were"} not taken.`),
      el("ul", {}, errors.slice(0, 20).map((text) => el("li", {}, text)))));
  } else say(`${count(wanted.length, "file")} added.`);
}

function fileList(page, waits) {
  const { files } = page.view.project;
  if (!files.length) return null;
  return el("details", { id: "file-list", open: files.length < 8 }, el("summary", {}, count(files.length, "file")),
    el("ul.plain.scroll", { tabindex: "0", "aria-label": "Files" }, files.map((file) => el("li.row.between", {},
      el("span", {}, file.name, el("span.quiet.small", {}, ` ${about(file)}`)),
      el("button", { type: "button", id: `remove-${file.role}-${file.number}`, disabled: waits, "aria-label": `Remove ${file.name}`,
        click: (event) => busy(event.currentTarget, async () => {
          if (!(await mayForget(page))) return;
          await ask("DELETE", `${page.path}/files/${file.number}?role=${file.role}`);
          await page.refresh();
        }) }, "Remove")))));
}

function about(file) {
  if (file.kind === "table") return `table, ${bytes(file.size)}`;
  const time = file.kind === "video" ? `, about ${file.n_frames} frames` : "";
  const role = ["originals", "released"].includes(file.role) ? `${file.role === "originals" ? "before" : "after"}, ` : "";
  return `${role}${file.width} × ${file.height}${time}, ${bytes(file.size)}`;
}

function runCard(page) {
  const { project, jobs, found } = page.view;
  const waits = Boolean(page.running());
  const word = project.kind === "audit" ? "Audit" : "Release";
  const ready = project.kind === "scene" ? found : project.files.length > 0;
  return el("div.card", {}, step(project.kind === "scene" ? 5 : 3, word === "Audit" ? "Audit" : "Release and download"),
    el("p.quiet", {}, `${word === "Audit" ? "" : "New files are written; yours stay as they are. "}You may close this page: the work goes on as long as ksame studio runs, and what was done is here again later.`),
    el("div.row", {},
      el("button.main", { type: "button", id: "start", disabled: waits || !ready, click: (event) => busy(event.currentTarget, () => start(page, "run")) }, word),
      ready ? null : el("span.quiet.small", {}, project.kind === "scene" ? "Look for people first." : "Add files first.")),
    jobs.filter((job) => job.action !== "find").map((job) => jobCard(page, job)));
}

function endCard(page) {
  const forget = async (event) => busy(event.currentTarget, async () => {
    if (!(await sure("Delete the originals?", "The uploaded files and what was found in them are deleted from this machine. What jobs wrote stays.", "Delete the originals"))) return;
    await ask("DELETE", `${page.path}/files`);
    await page.refresh();
  });
  const remove = async (event) => busy(event.currentTarget, async () => {
    if (!(await sure("Delete the project?", "Its originals, and everything that was made of them, are deleted from this machine.", "Delete"))) return;
    await ask("DELETE", page.path);
    location.hash = "#/";
  });
  return el("div.card", {}, el("h2", {}, "When you are done"),
    el("p.quiet", {}, "The project holds copies of the originals. Delete them when they are no longer needed."),
    el("div.row", {}, el("button.bad", { type: "button", id: "delete-originals", click: forget }, "Delete the originals"),
      el("button.bad", { type: "button", id: "delete-project", click: remove }, "Delete the project")));
}
