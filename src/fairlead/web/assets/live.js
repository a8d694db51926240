// Follow the feed; when something happens, take the page anew from the server, which has escaped
// it, and change only what differs, so that focus, open parts and bars in motion stay.
const script = document.currentScript;
const live = document.getElementById("live");
const PAUSE = 250;
let feed;
let query = asked(script);
let waiting = false;
let asking = false;

// Which streams, parted by spaces, or which machine the page is about.
function asked(one) {
  const words = ["stream", "machine"].flatMap((name) =>
    (one.dataset[name] || "").split(" ").filter(Boolean).map((value) => [name, value]));
  return new URLSearchParams(words).toString();
}

function show(text, well) {
  live.hidden = false;
  live.textContent = text;
  live.classList.toggle("well", well);
}

async function refresh() {
  waiting = false;
  if (asking) return later();
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.redirected) return location.assign(answer.url);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = fresh.querySelector("main");
    if (!main || answer.status >= 500) return show("server error, retrying", false);
    const focused = document.activeElement;
    morph(document.querySelector("main"), main);
    if (focused?.isConnected && document.activeElement !== focused) focused.focus();
    const dialog = document.querySelector("dialog:not([open])");
    if (dialog && fresh.querySelector("dialog")) morph(dialog, fresh.querySelector("dialog"));
    document.title = fresh.title;
    const wanted = asked(fresh.querySelector("script[src$='/live.js']") || script);
    if (wanted !== query) follow(wanted);
    sayTimes();
    document.dispatchEvent(new Event("fairlead:fresh"));
  } catch {
    show("not connected, retrying", false);
  } finally {
    asking = false;
  }
}

function later() {
  if (waiting) return;
  waiting = true;
  setTimeout(refresh, PAUSE);
}

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (old.nodeType === Node.ELEMENT_NODE) {
    const said = old.nodeName === "TIME" && old.dateTime === fresh.dateTime;
    morphAttributes(old, fresh);
    // What a script has put into these is newer than what the server can know.
    if (!said && !("keep" in old.dataset)) morphChildren(old, fresh);
  }
}

function morphAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    // Whether a part is open is the reader's choice.
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!["open", "title", "disabled"].includes(name) && !fresh.hasAttribute(name)) {
      old.removeAttribute(name);
    }
  }
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  const wanted = new Set([...fresh.children].map((child) => child.dataset.key));
  for (const child of [...old.children]) {
    if (!child.dataset.key) continue;
    // Gone before the others are placed: moving one that has the focus would take it away.
    if (wanted.has(child.dataset.key)) keyed.set(child.dataset.key, child);
    else child.remove();
  }
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = child.dataset?.key ? keyed.get(child.dataset.key) : place;
    const strangers = child.dataset?.key ? !same : place?.dataset?.key;
    if (!same || strangers) {
      old.insertBefore(document.importNode(child, true), place);
      continue;
    }
    if (same !== place) old.insertBefore(same, place);
    const after = same.nextSibling;
    morph(same, child);
    place = after;
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

// Moments in words of this reader: how long ago, with the local time beside it.
function sayTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const text = since((Date.now() - at) / 1000, time.dataset.say);
    if (time.textContent !== text) time.textContent = text;
    time.title = at.toLocaleString();
  }
}

function since(seconds, say) {
  if (seconds < 5) return say === "for" ? "for 0 s" : "now";
  const [size, word] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([n]) => seconds >= n);
  const span = `${Math.floor(seconds / size)} ${word}`;
  return say === "for" ? `for ${span}` : `${span} ago`;
}

function follow(wanted) {
  feed?.close();
  query = wanted;
  feed = new EventSource("/api/v1/feed/live?" + query);
  feed.onopen = () => {
    show("live", true);
    // What happened while the line was down is not sent again to one who saw nothing before.
    later();
  };
  feed.onmessage = later;
  feed.onerror = () => {
    show("not connected, retrying", false);
    // A refusal ends the line for good; the page itself tells why.
    if (feed.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); follow(query); }, 5000);
  };
}

document.addEventListener("fairlead:changed", later);
setInterval(sayTimes, 5000);
sayTimes();
follow(query);
