// People, their tracks, and what becomes of a frame: what only photographs and video have.
import { ask, busy, choose, clock, complain, count, el, field, fill, say, step, sure } from "./dom.js";
import { jobCard } from "./jobs.js";

const WORDS = {
  found: "found", filled: "filled in between", masked: "masked: not seen well enough", unsure: "masked: not sure that it is a face", drawn: "masked: drawn by you",
};
const WISHES = [["replace", "Replace"], ["keep", "Keep"], ["mask", "Mask"]];

export function peopleCard(page) {
  const { found, undo } = page.view;
  const looking = page.running()?.action === "find";
  const waits = Boolean(page.running());
  const last = page.view.jobs.find((job) => job.action === "find");
  return el("div.card", {}, step(2, "People"),
    last && (last.state !== "done" || last.messages.length) ? jobCard(page, last) : null,
    !found || looking ? (last ? null : el("p.quiet", {}, "Everybody who is found is shown here. Add files and press Look for people."))
      : page.people.length ? [
        el("p.quiet", {}, "Choose what becomes of each person. If one person is here under two names, put the two together: a choice holds for one name only."),
        el("div.row", {}, el("button", { type: "button", id: "undo", disabled: waits || !undo, click: (event) => busy(event.currentTarget, () => correct(page, { do: "undo" })) }, `Take back the last correction${undo ? ` (${undo})` : ""}`)),
        el("ul.legend.small", { "aria-label": "Colours of the timelines" }, Object.entries(WORDS).map(([what, words]) => el("li", {}, el(`i.${what}`, { "aria-hidden": "true" }), words))),
        el("div.people", {}, page.people.map((person) => personCard(page, person, waits)))]
        : el("div.note", {}, el("p", {}, "No face was found. Look at the pictures: what is not found is not changed. You can draw boxes below.")));
}

function personCard(page, person, waits) {
  const wish = page.view.project.wishes[person.name] || (person.confirmed ? "replace" : "mask");
  const set = (value) => page.change(({ wishes: { [person.name]: last, ...others } }) => ({ wishes: value === "replace" ? others : { ...others, [person.name]: value } })).catch(complain);
  const options = person.confirmed ? WISHES : WISHES.slice(1);
  const others = page.people.filter((each) => each.name !== person.name);
  const drawn = person.tracks.every((track) => track.stretches.every((each) => each.what === "drawn"));
  return el("article.person", { "aria-labelledby": `person-${person.name}`, "data-person": person.name },
    el("div.row.between", {},
      el("h3", { id: `person-${person.name}` }, person.name),
      person.confirmed ? (drawn ? el("span.pill", {}, "drawn by you") : null) : el("span.pill.warn", {}, "not sure that it is a face")),
    el("div.thumbs", {}, person.tracks.flatMap((track) => track.thumbs.map((frame) => [track, frame])).slice(0, 5).map(([track, frame]) =>
      el("img", { src: `/api${page.path}/files/${track.file}/thumbs/${track.number}/${frame}`, alt: `${person.name}, ${fileOf(page, track.file)?.name}, frame ${frame}`, width: 84, height: 84, loading: "lazy" }))),
    el("fieldset", {}, el("legend", {}, `What becomes of ${person.name}`), el("div.segments", {}, options.map(([value, words]) =>
      el("label", {}, el("input", { type: "radio", id: `wish-${person.name}-${value}`, name: `wish-${person.name}`, value, checked: wish === value, disabled: waits, change: () => set(value) }), el("span", {}, words))))),
    wish === "keep" ? el("p.note.small", {}, `${person.name} stays as they are, and can be recognised.`) : null,
    el("p.small.quiet", {}, `${count(person.frames, "frame")}${person.masked ? `, ${person.masked} of them at risk: a mask stands in there` : ""}`),
    el("div.tracks", {}, person.tracks.map((track) => trackRow(page, person, track))),
    el("details", { id: `correct-${person.name}` }, el("summary", {}, "Something is wrong: correct it"),
      others.length ? mergeRow(page, person, others, waits) : null,
      person.tracks.map((track) => splitRow(page, person, track, waits))));
}

function fileOf(page, number) {
  return page.view.project.files.find((file) => file.number === number && file.role === "media");
}

function trackRow(page, person, track) {
  const file = fileOf(page, track.file);
  const length = Math.max(file?.n_frames || 1, track.last + 1);
  const words = track.stretches.map((each) => `${each.first} to ${each.last} ${WORDS[each.what]}`).join("; ");
  const bar = el("div.bar", { role: "img", "aria-label": `Frames of ${length}: ${words}`, title: words,
    click: (event) => show(page, track.file, Math.min(track.last, Math.max(track.first, Math.floor(length * event.offsetX / bar.clientWidth)))) },
  track.stretches.map((each) => {
    const part = el(`i.${each.what}`);
    part.style.left = `${100 * each.first / length}%`;
    part.style.width = `${100 * (each.last - each.first + 1) / length}%`;
    return part;
  }));
  return el("div.track", {}, el("div.row.between", {},
    el("span.small.quiet", {}, file?.kind === "video" ? `${file.name}, ${clock(track.first / file.rate)} to ${clock(track.last / file.rate)}` : file?.name),
    el("button.small", { type: "button", "aria-label": `Show ${person.name} in ${file?.name}`, click: () => show(page, track.file, track.first) }, "Show")), file?.kind === "video" ? bar : null);
}

function mergeRow(page, person, others, waits) {
  const into = choose(`merge-${person.name}`, others.map((each) => [each.name, each.name]), others[0].name, () => {});
  return el("div.row.end", {}, field(`${person.name} is the same person as`, into),
    el("button", { type: "button", id: `merge-go-${person.name}`, disabled: waits, click: (event) => busy(event.currentTarget, () => correct(page, { do: "merge", person: person.name, into: into.value })) }, "Put together"));
}

function splitRow(page, person, track, waits) {
  const id = `${track.file}-${track.number}`;
  const one = track.first === track.last;
  const frame = el("input", { type: "number", id: `split-${id}`, min: track.first, max: track.last, value: one ? track.first : Math.ceil((track.first + track.last) / 2) });
  const away = async () => {
    if (!(await sure("Throw this away?", `What ${person.name} shows here is no face, and stays as it is. If it is one, it can be recognised.`, "It is no face"))) return;
    await correct(page, { do: "discard", file: track.file, track: track.number });
  };
  return el("div.row.end", {},
    one ? null : field(`Somebody else from this frame on (${track.first} to ${track.last})`, frame),
    el("button", { type: "button", id: `split-go-${id}`, disabled: waits, click: (event) => busy(event.currentTarget, () => correct(page, { do: "split", file: track.file, track: track.number, frame: Number(frame.value) })) }, one ? "This is somebody else" : "Split"),
    el("button.bad", { type: "button", id: `discard-${id}`, disabled: waits, click: (event) => busy(event.currentTarget, away) }, "Not a face"));
}

async function correct(page, body) {
  await page.take(await ask("POST", `${page.path}/corrections`, body));
  await page.reread?.();
  say("Corrected.");
}

function show(page, file, frame) {
  page.goto?.(file, frame);
  document.getElementById("preview").scrollIntoView({ block: "start" });
}

/** Everybody who gets a new face that is drawn, so that another can be. */
function withNewFace(page) {
  const { settings, wishes } = page.view.project;
  const draws = page.choices.scenes.find(({ name }) => name === settings.method)?.draws;
  return page.people.filter(({ name, confirmed, frames, masked }) => draws && confirmed && masked < frames && (wishes[name] || "replace") === "replace");
}

export function previewCard(page) {
  const state = { file: null, frame: 0, after: false, cut: 50, turn: 0, whose: "" };
  const media = () => page.view.project.files.filter((file) => file.role === "media");
  const current = () => media().find((file) => file.number === state.file) || media()[0];
  const place = el("div");
  const before = el("img", { alt: "" }), after = el("img.after", { alt: "" }), line = el("div.cut"), boxes = el("div"), drawing = el("div.drawing", { hidden: true });
  const tags = [el("span.tag.l", {}, "before"), el("span.tag.r", {}, "after")];
  const stage = el("div.view", {}, before, after, line, boxes, drawing, ...tags);
  const note = el("p.small.quiet", { "aria-live": "polite", id: "preview-note" });
  const slide = el("div");

  const setCut = (value) => {
    state.cut = value;
    after.style.clipPath = `inset(0 0 0 ${value}%)`;
    line.style.left = `${value}%`;
  };
  const showAfter = (shown) => {
    for (const each of [after, line, slide, ...tags]) each.hidden = !shown;
    boxes.hidden = shown;
  };
  const put = (image, blob) => {
    if (image.src) URL.revokeObjectURL(image.src);
    image.src = URL.createObjectURL(blob);
  };
  const load = async () => {
    const file = current();
    const turn = (state.turn += 1);
    if (!file) return;
    const path = `${page.path}/files/${file.number}/frames/${state.frame}`;
    try {
      const [picture, faces] = await Promise.all([ask("GET", `${path}/before`), page.view.found && !page.running() ? ask("GET", `${path}/faces`) : []]);
      if (turn !== state.turn) return;
      put(before, picture);
      before.alt = `${file.name}, frame ${state.frame}, as it is`;
      fill(boxes, faces.map((face) => box("div.face", file, face, el("b", {}, face.person))));
      showAfter(false);
      note.textContent = "";
      if (!state.after || page.running()) return;
      note.textContent = "Choosing faces and drawing this frame …";
      const made = await ask("GET", `${path}/after`);
      if (turn !== state.turn) return;
      put(after, made);
      after.alt = `${file.name}, frame ${state.frame}, as it will be published`;
      showAfter(true);
      note.textContent = "These are the pixels that will be published, before the file is compressed.";
    } catch (error) {
      if (turn === state.turn) { note.textContent = ""; complain(error); }
    }
  };
  let wait = 0;
  const soon = () => { clearTimeout(wait); wait = setTimeout(load, 250); };
  const box = (kind, file, { x, y, width, height }, ...children) => {
    const made = el(kind, {}, ...children);
    Object.assign(made.style, { left: `${100 * x / file.width}%`, top: `${100 * y / file.height}%`, width: `${100 * width / file.width}%`, height: `${100 * height / file.height}%` });
    return made;
  };

  const draw = () => {
    const files = media(), file = current();
    if (!file) return fill(place, el("p.quiet", {}, "Add files first."));
    state.file = file.number;
    state.frame = Math.min(state.frame, file.n_frames - 1);
    const moved = el("output.small", { for: "frame" });
    const tell = () => { moved.textContent = `${state.frame}, at ${clock(state.frame / file.rate)}`; };
    const slider = el("input", { type: "range", id: "frame", min: 0, max: file.n_frames - 1, value: state.frame, input: () => { state.frame = Number(slider.value); tell(); soon(); } });
    const cut = el("input", { type: "range", id: "cut", min: 0, max: 100, value: state.cut, input: () => setCut(Number(cut.value)) });
    fill(slide, el("label", { for: "cut" }, "Before and after"), cut);
    tell();
    const waits = !page.view.found || Boolean(page.running());
    const faces = withNewFace(page);
    const whose = choose("another-for", [["", "everyone"], ...faces.map(({ name }) => [name, name])], state.whose, (name) => { state.whose = name; });
    const another = async () => {
      const person = faces.find(({ name }) => name === whose.value);
      const seen = !person || person.tracks.some((each) => each.file === state.file && each.first <= state.frame && state.frame <= each.last);
      if (!seen) Object.assign(state, { file: person.tracks[0].file, frame: person.tracks[0].thumbs[0] });
      state.after = true; // the picture is loaded anew once the change is there
      const seed = crypto.getRandomValues(new Uint32Array(1))[0];
      await page.change((now) => (person ? { another: [...now.another, person.name] } : { another: [], settings: { ...now.settings, seed } }));
    };
    fill(place,
      el("div.row.end", {},
        files.length > 1 ? field("File", choose("preview-file", files.map((each) => [String(each.number), each.name]), String(file.number), (value) => { state.file = Number(value); state.frame = 0; draw(); load(); })) : null,
        el("button", { type: "button", id: "preview-go", disabled: waits, click: (event) => busy(event.currentTarget, () => { state.after = true; return load(); }) }, "Show before and after")),
      faces.length ? el("div.row.end", {}, field("Another face for", whose),
        el("button", { type: "button", id: "another", disabled: waits, "aria-describedby": "another-hint", click: (event) => busy(event.currentTarget, another) }, "Draw another face"),
        el("p.small.quiet", { id: "another-hint" }, `Up to ${page.view.project.settings.k} people share a face, and get the other one together.`)) : null,
      file.kind === "video" ? el("div", {}, el("label", { for: "frame" }, "Frame ", moved), slider) : null,
      el("div.viewer", {}, stage, slide), note,
      page.view.found ? drawForm(page, file, state, stage, drawing, box) : null);
  };
  page.goto = (number, frame) => { Object.assign(state, { file: number, frame }); draw(); load(); };
  page.stale = () => { draw(); soon(); };
  page.reread = load;
  setCut(50);
  showAfter(false);
  draw();
  load();
  return el("div.card", {}, step(4, "Preview"),
    el("p.quiet", {}, "Look at any frame before anything is written. The faces you see here are those of the release."), place);
}

/** A face that was missed: drag on the picture, or give numbers. */
function drawForm(page, file, state, stage, drawing, box) {
  const number = (id, value) => el("input", { type: "number", id, value, min: 0, step: 1, required: true, input: () => paint() });
  const inputs = Object.fromEntries([["x", file.width / 3], ["y", file.height / 3], ["width", file.width / 5], ["height", file.height / 4]].map(([name, value]) => [name, number(`draw-${name}`, Math.round(value))]));
  const first = number("draw-first", state.frame), last = number("draw-last", file.n_frames - 1);
  const values = () => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, Number(input.value)]));
  const paint = () => Object.assign(drawing.style, Object.fromEntries(["left", "top", "width", "height"].map((side) => [side, box("div", file, values()).style[side]])));
  const spot = (event) => {
    const area = stage.getBoundingClientRect();
    return [file.width * (event.clientX - area.left) / area.width, file.height * (event.clientY - area.top) / area.height];
  };
  let from = null;
  const drag = (event) => {
    if (!from) return;
    const to = spot(event);
    const [x, y] = [0, 1].map((i) => Math.max(0, Math.min(from[i], to[i])));
    const size = { width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]) };
    for (const [name, value] of Object.entries({ x, y, ...size })) inputs[name].value = Math.max(name in size ? 1 : 0, Math.round(value));
    paint();
  };
  const details = el("details", { id: "draw", toggle: () => {
    drawing.hidden = !details.open;
    stage.classList.toggle("draw", details.open);
    paint();
    stage.onpointerdown = details.open ? (event) => { event.preventDefault(); from = spot(event); stage.setPointerCapture(event.pointerId); } : null;
    stage.onpointermove = details.open ? drag : null;
    stage.onpointerup = () => { from = null; };
  } }, el("summary", {}, "A face was missed: draw a box"),
  el("p.small.quiet", {}, "Drag on the picture, or give numbers in pixels. What is in the box is masked from the first to the last frame."),
  el("div.row.end", {}, [["x", "Left"], ["y", "Top"], ["width", "Width"], ["height", "Height"]].map(([name, words]) => field(words, inputs[name])),
    file.n_frames > 1 ? [field("First frame", first), field("Last frame", last)] : null,
    el("button", { type: "button", id: "draw-go", disabled: Boolean(page.running()), click: (event) => busy(event.currentTarget, async () => {
      await correct(page, { do: "draw", file: file.number, first: Number(first.value), last: Math.min(Number(last.value), file.n_frames - 1), ...values() });
    }) }, "Mask this box")));
  return details;
}
