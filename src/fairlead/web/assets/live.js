// Follow the feed; when something happens, take the page's main part anew from the server,
// which has escaped it. Nothing from an event is ever put into the page here.
const script = document.currentScript;
const status = document.getElementById("live");
const stream = script.dataset.stream;
const query = stream ? "?stream=" + encodeURIComponent(stream) : "";
const feed = new EventSource("/api/v1/feed/live" + query);
let waiting = false;

function show(text) {
  status.hidden = false;
  status.textContent = text;
}

async function refresh() {
  waiting = false;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(fresh.querySelector("main"));
}

feed.onopen = () => show("live");
feed.onerror = () => show("not connected, trying again");
feed.onmessage = () => {
  if (waiting) return;
  waiting = true;
  setTimeout(refresh, 300);
};
