// Jobs: how far they are, what came of them, and what they wrote.
import { ask, busy, bytes, el, sure } from "./dom.js";

const STATES = {
  running: ["running", ""], done: ["done", ""], withheld: ["done, look at what is listed", "warn"],
  interrupted: ["interrupted", "warn"], failed: ["failed", "bad"],
};
const TITLES = { find: "Looking for people", run: "Release", audit: "Audit" };

export async function start(page, action, source) {
  await page.changing;
  const from = source === undefined ? "" : `&source=${source}`;
  await ask("POST", `${page.path}/jobs?action=${action}${from}`);
  await page.refresh();
  document.querySelector("[data-state=running]")?.scrollIntoView({ block: "nearest" });
}

/** Show how far a job is without drawing it anew: a button that is being pressed must stay where it is. */
export function showProgress({ number, progress: { what, done, total } }) {
  const card = document.getElementById(`job-${number}`);
  const bar = card?.querySelector("progress");
  if (!bar) return;
  if (total > 0) Object.assign(bar, { max: total, value: done });
  else bar.removeAttribute("value");
  bar.setAttribute("aria-label", what || "starting");
  card.querySelector(".progress-words").textContent = words(what, done, total);
}

function words(what, done, total) {
  return what ? `${what}${total > 0 ? `: ${done} of ${total}` : ""}` : "starting …";
}

export function jobCard(page, job) {
  const [state, tone] = STATES[job.state];
  const order = (verb) => (event) => busy(event.currentTarget, async () => { await ask("POST", `${page.path}/jobs/${job.number}/${verb}`); await page.refresh(); });
  const { what, done, total } = job.progress;
  const known = job.state === "running" && total > 0;
  const audited = job.action === "run" && page.view.project.kind !== "audit" && ["done", "withheld"].includes(job.state);
  return el("article.job", { id: `job-${job.number}`, "data-state": job.state, "aria-labelledby": `job-${job.number}-title` },
    el("div.row.between", {}, el("h3", { id: `job-${job.number}-title` }, `${page.view.project.kind === "audit" ? "Audit" : TITLES[job.action]} (job ${job.number})`), el(tone ? `span.pill.${tone}` : "span.pill", {}, state)),
    job.state === "running" ? [
      el("progress", known ? { max: total, value: done, "aria-label": what } : { "aria-label": what || "starting" }),
      el("p.small.quiet.progress-words", { "aria-live": "polite" }, words(what, done, total)),
      el("button", { type: "button", id: `cancel-${job.number}`, click: order("cancel") }, "Cancel")] : null,
    ["interrupted", "failed"].includes(job.state) ? el("div.row", {},
      el("button", { type: "button", id: `resume-${job.number}`, disabled: Boolean(page.running()), click: order("resume") }, job.state === "failed" ? "Try again" : "Resume")) : null,
    job.summary.map((text) => el("p", {}, text)),
    job.at_risk.length ? el("div.note", {}, el("p", {}, el("strong", {}, "Look at these before you publish:")), el("ul", {}, job.at_risk.map((text) => el("li", {}, text)))) : null,
    job.messages.length ? el(job.state === "failed" ? "div.note.bad" : "div.note", {}, job.messages.map((text) => el("p.small", {}, text))) : null,
    downloads(page, job),
    el("details", { id: `command-${job.number}` }, el("summary", {}, "The command for this"), el("code.block", {}, job.command),
      el("p.small.quiet", {}, `In ${page.view.folder}. The seed is a secret: it repeats the run.`)),
    el("div.row", {},
      audited ? el("button", { type: "button", id: `audit-${job.number}`, disabled: Boolean(page.running()), click: (event) => busy(event.currentTarget, () => start(page, "audit", job.number)) }, "Audit this release") : null,
      job.state === "running" ? null : el("button.bad", { type: "button", id: `delete-${job.number}`, "aria-label": `Delete job ${job.number} and what it wrote`, click: (event) => busy(event.currentTarget, async () => {
        if (!(await sure("Delete this job?", "What it wrote is deleted too.", "Delete"))) return;
        await ask("DELETE", `${page.path}/jobs/${job.number}`);
        await page.refresh();
      }) }, "Delete")));
}

function downloads(page, job) {
  const group = (kind, heading, files) => files.length ? el(`div.${kind}`, {}, el("h4", {}, heading), el("ul.plain.scroll", { tabindex: "0", "aria-label": heading }, files.map((file) => {
    const path = `/api${page.path}/jobs/${job.number}/downloads/${file.number}`;
    const look = /\.(html|png)$/.test(file.name) ? el("a", { href: `${path}?look=true`, target: "_blank", rel: "noopener" }, "Open") : null;
    return el("li.row.between", {}, el("span", {}, el("a", { href: path, download: file.name, "data-name": file.name }, file.name),
      el("span.quiet.small", {}, ` ${bytes(file.size)}${file.about ? `, ${file.about}` : ""}`)), look);
  }))) : null;
  const whole = job.downloads.find((file) => file.name === "publish.zip");
  const everything = whole ? el("a.button.main", { href: `/api${page.path}/jobs/${job.number}/downloads/${whole.number}`, download: whole.name, "data-name": whole.name }, `Download everything to publish (${bytes(whole.size)})`) : null;
  const sheet = job.downloads.find((file) => ["contact-sheet.png", "review.png"].includes(file.name));
  const picture = sheet ? el("details", { id: `sheet-${job.number}`, open: sheet.publish }, el("summary", {}, sheet.publish ? "All faces on one sheet" : "Everyone before and after"),
    el("img.sheet", { src: `/api${page.path}/jobs/${job.number}/downloads/${sheet.number}?look=true`, alt: sheet.about, loading: "lazy" })) : null;
  return [picture, everything ? el("p", {}, everything) : null,
    group("public", "To publish, one by one", job.downloads.filter((file) => file.publish && file !== whole)),
    group("secret", "For you alone: never publish these", job.downloads.filter((file) => !file.publish))];
}
