// Keeps a page up to date. It writes only text, never markup.
"use strict";

const main = () => document.getElementById("main");

function elapsed(since) {
  const s = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, "0")} min`;
}

function tick() {
  for (const t of document.querySelectorAll("time[data-since]")) t.textContent = elapsed(t.dataset.since);
}

function busy() {
  const a = document.activeElement;
  return Boolean(a && a.matches("textarea, input:not([type=hidden])") && a.value);
}

let loading = false;

// reload replaces the page's content, and keeps the focus and open elements.
async function reload() {
  if (loading || busy()) return;
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected || !answer.ok) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    const open = [...document.querySelectorAll("details[open][id]")].map((d) => d.id);
    const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
    main().replaceWith(document.importNode(next, true));
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    tick();
    follow();
  } catch { /* the next change tries again */ } finally {
    loading = false;
  }
}

function connection(text) {
  document.getElementById("connection").textContent = text;
}

function listen(url) {
  const source = new EventSource(url);
  source.onopen = () => connection(" · live");
  source.onerror = () => connection(" · not connected");
  return source;
}

// A board: one stream for all its runs.
if (document.body.dataset.live) {
  listen(document.body.dataset.live).onmessage = (e) => {
    const now = JSON.parse(e.data);
    for (const run of now.runs) {
      const row = document.querySelector(`[data-run="${CSS.escape(run.run)}"]`);
      for (const field of ["phase", "last", "cost"]) {
        const at = row?.querySelector(`[data-field="${field}"]`);
        if (at && run[field] && at.textContent !== run[field]) at.textContent = run[field];
      }
    }
    if (now.digest !== main().dataset.digest) reload();
  };
}

const shown = 500; // maximum number of log lines on the page

let followed;

// An active run: its events, from the end of the page's log.
function follow() {
  const log = document.querySelector(".log[data-events]");
  followed?.close();
  if (!log) return;
  const source = (followed = listen(`${log.dataset.events}?after=${log.dataset.after}`));
  source.addEventListener("end", () => { source.close(); reload(); });
  source.onmessage = (e) => {
    const event = JSON.parse(e.data);
    const line = document.createElement("li");
    const at = document.createElement("time");
    at.textContent = new Date(event.time).toLocaleTimeString("sv");
    const kind = document.createElement("b");
    kind.textContent = event.source || event.kind;
    const text = document.createElement("span");
    const check = event.check;
    text.textContent = (check ? `${check.command}: exit status ${check.exit_code}\n${check.tail}` : event.text || event.stage || "").slice(0, 4096);
    line.append(at, " ", kind, " ", text);
    const list = log.querySelector("ol");
    const below = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    list.append(line);
    log.querySelector(".empty")?.remove();
    while (list.children.length > shown) list.firstElementChild.remove();
    if (below) log.scrollTop = log.scrollHeight;
  };
}

for (const log of document.querySelectorAll(".log[data-events]")) log.scrollTop = log.scrollHeight;
tick();
setInterval(tick, 1000);
follow();
