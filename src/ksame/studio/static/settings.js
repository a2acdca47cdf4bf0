// Which method, with how many people; what it promises, in the registry's own words.
import { choose, complain, el, field, step } from "./dom.js";

export function settingsCard(page) {
  const { project } = page.view;
  const { settings } = project;
  const set = (change) => page.change((now) => ({ settings: { ...now.settings, ...change } })).catch((error) => { complain(error); page.draw("settings"); });
  const heading = step(project.kind === "scene" ? 3 : 2, project.kind === "audit" ? "Attackers" : "Method");
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
    promise(page, method, settings),
    vault(project.kind, settings, set));
}

function sceneFields(page, method, settings, set) {
  return [
    method.masks ? null : field("What is invented", choose("cover", page.choices.covers.map(([name, words]) => [name, words]), settings.cover, (cover) => set({ cover }))),
    field("Sound of recordings", choose("audio", [["keep", "keep"], ["disguise", "disguise voices"], ["drop", "take out"]], settings.audio, (audio) => set({ audio }))),
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
  const lines = [["In plain words", meaning(method, settings.k, scene)], ["Promise", method.promise], ["Bound on recognition", method.bound.replace(/\b1\/k\b/, `1/${settings.k}`)], ["Needs", counted(method.needs, settings.k)]];
  if (method.level) lines.push(["Strength", method.level]);
  if (scene && !method.masks && leaks) lines.push(["What stays", leaks]);
  if (scene) lines.push(["Voices", page.choices.sounds.find(([name]) => name === settings.audio)[1]]);
  return el("div.promise", { id: "promise" }, el("dl", {}, lines.filter(([, text]) => text && text !== "-").map(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])),
    method.takes_k && scene ? el("p.small", {}, `Where there are fewer than ${settings.k} people, people who do not exist fill up the group. They hide nobody; the certificate says how many real people share a face.`) : null,
    !scene && settings.select ? el("p.small", {}, "Whoever is known to be behind a face is then known to have its label: that is what keeping it means.") : null);
}

/** Say how many k, or 2k, are. */
function counted(text, k) {
  return text.replace(/\b(\d*)k\b/g, (_, times) => (times || 1) * k);
}

/** What a promise means for somebody who is shown. */
function meaning({ promise, bound, summary }, k, scene) {
  const words = counted(summary, k);
  const does = `${words[0].toUpperCase()}${words.slice(1)}.`;
  if (promise === "nothing") return `${does} Recognisers see through most masks: choose one only where a mask is what you need.`;
  if (scene) return `${does} So the face does not tell which of them is shown. A recogniser looks whether it still knows them: whoever it knows is masked.`;
  if (bound.endsWith("any recogniser")) return `${does} No recogniser, however good, can be right about more than one in ${bound.startsWith("1/k") ? k : "as many people as share a face"}.`;
  return `${does} This is meant for one way of measuring likeness. Another recogniser may still know people: audit the release.`;
}

function vault(kind, settings, set) {
  const sealed = kind === "scene" ? "the originals of everybody who was changed, and who became whom" : "who became whom";
  const key = el("input.wide", { type: "text", id: "recipient", value: settings.recipient || "", maxLength: 1000, placeholder: "age1…", autocomplete: "off", spellcheck: false,
    change: () => set({ recipient: key.value.trim() || null }) });
  return el("details", { id: "vault", open: Boolean(settings.recipient) }, el("summary", {}, "Vault (optional): a way back for whoever holds a key"),
    el("p.small", {}, `With a public key, a release also writes a vault: ${sealed}, sealed. Only the secret key that belongs to it opens the vault, and this page never needs that one. Keep the vault apart from what you publish.`),
    field("Public key of whoever may undo it (leave empty for no vault)", key, "It begins with age1. Whoever is to hold the key makes both halves with ksame vault keygen -o key.txt, and gives you this one."));
}

function attackers(page, settings, set) {
  const chosen = new Set(settings.attackers.split(","));
  const box = ([name, words]) => {
    const made = el("input", { type: "checkbox", id: `attacker-${name}`, checked: chosen.has(name), change: () => {
      made.checked ? chosen.add(name) : chosen.delete(name);
      if (chosen.size) set({ attackers: [...chosen].join(",") });
      else made.checked = Boolean(chosen.add(name));
    } });
    return el("label.row", {}, made, `${name} (${words})`);
  };
  return el("fieldset", {}, el("legend", {}, "Recognisers that try to name people"), el("div.row", {}, page.choices.attackers.map(box)),
    el("p.small.quiet", {}, "Twenty people or more say something; an audit needs at least two. The report shows originals: it stays with you."));
}
