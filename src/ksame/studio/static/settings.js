// Which method, with how many people; what it promises, in the registry's own words.
import { choose, complain, el, field } from "./dom.js";

export function settingsCard(page) {
  const { project } = page.view;
  const { settings } = project;
  const set = (change) => page.change({ settings: { ...settings, ...change } }).catch((error) => { complain(error); page.draw("settings"); });
  const step = project.kind === "scene" ? 3 : 2;
  const heading = el("h2", {}, el("span.step", { "aria-hidden": "true" }, String(step)), project.kind === "audit" ? "Attackers" : "Method");
  if (project.kind === "audit") return el("div.card", {}, heading, attackers(page, settings, set));
  const methods = project.kind === "scene" ? page.choices.scenes : page.choices.faces;
  const method = methods.find((each) => each.name === settings.method) || methods[0];
  const number = (id, value, limits, change) => {
    const made = el("input", { type: "number", id, value: value ?? "", ...limits, change: () => made.reportValidity() && change(made.value) });
    return made;
  };
  return el("div.card", {}, heading,
    el("div.row.end", {},
      field("Method", choose("method", methods.map((each) => [each.name, `${each.name}: ${each.summary}`]), method.name, (name) => set({ method: name, level: null }))),
      method.takes_k ? field("People who share a face (k)", number("k", settings.k, { min: 2, max: 1000000, required: true }, (value) => set({ k: Number(value) }))) : null,
      method.level ? field("Strength", number("level", settings.level, { step: "any" }, (value) => set({ level: value === "" ? null : Number(value) }))) : null,
      project.kind === "scene" ? sceneFields(page, method, settings, set) : setFields(settings, set)),
    promise(page, method, settings));
}

function sceneFields(page, method, settings, set) {
  return [
    method.masks ? null : field("What is invented", choose("cover", page.choices.covers.map(([name, words]) => [name, words]), settings.cover, (cover) => set({ cover }))),
    field("Sound of recordings", choose("audio", [["keep", "keep"], ["drop", "take out"]], settings.audio, (audio) => set({ audio }))),
  ];
}

function setFields(settings, set) {
  const select = el("input", { type: "text", id: "select", value: settings.select || "", maxLength: 60, change: () => set({ select: select.value.trim() || null }) });
  return [
    field("Label to keep (Select)", select),
    settings.select ? field("Classes of too few people", choose("small", [["error", "stop and say so"], ["merge", "put together"], ["drop", "leave out"]], settings.small_classes, (small_classes) => set({ small_classes }))) : null,
  ];
}

function promise(page, method, settings) {
  const leaks = page.choices.covers.find(([name]) => name === settings.cover)?.[2];
  const scene = page.view.project.kind === "scene";
  const lines = [["What it does", method.summary], ["Promise", method.promise], ["Bound on recognition", method.bound.replace(/\b1\/k\b/, `1/${settings.k}`)], ["Needs", method.needs]];
  if (method.level) lines.push(["Strength", method.level]);
  if (scene && !method.masks && leaks) lines.push(["What stays", leaks]);
  return el("div.promise", { id: "promise" }, el("dl", {}, lines.filter(([, text]) => text && text !== "-").map(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])),
    method.takes_k && scene ? el("p.small", {}, "Where there are fewer than k people, people who do not exist fill up the group. They hide nobody; the certificate says how many real people share a face.") : null,
    !scene && settings.select ? el("p.small", {}, "Whoever is known to be behind a face is then known to have its label: that is what keeping it means.") : null,
    method.promise === "nothing" ? el("p.small", {}, "Recognisers see through most masks. Choose one only where a mask is what you need.") : null);
}

function attackers(page, settings, set) {
  const chosen = new Set(settings.attackers.split(","));
  const box = (name) => {
    const made = el("input", { type: "checkbox", id: `attacker-${name}`, checked: chosen.has(name), change: () => {
      made.checked ? chosen.add(name) : chosen.delete(name);
      if (chosen.size) set({ attackers: [...chosen].join(",") });
      else made.checked = Boolean(chosen.add(name));
    } });
    return el("label.row", {}, made, name);
  };
  return el("fieldset", {}, el("legend", {}, "Recognisers that try to name people"), el("div.row", {}, page.choices.attackers.map(box)),
    el("p.small.quiet", {}, "Twenty people or more say something; an audit needs at least two. The report shows originals: it stays with you."));
}
