// The verbs of one rollout: asked in a dialog where the way back is long, sent once each,
// and answered in words.
const EVERY = 2000;
const answer = document.getElementById("answer");
const dialog = document.getElementById("sure");

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verb]");
  if (!button || button.getAttribute("aria-disabled")) return;
  if (button.dataset.dialog) confirm(JSON.parse(button.dataset.dialog), button);
  else send({}, button);
});

// Not a submit button: Enter in the reason means yes.
document.getElementById("sure-no").addEventListener("click", () => dialog.close());

function confirm(words, button) {
  document.getElementById("sure-title").textContent = words.title;
  document.getElementById("sure-text").textContent = words.text;
  document.getElementById("sure-yes").textContent = words.yes;
  document.getElementById("sure-yes").classList.toggle("danger", words.danger);
  for (const part of ["why", "revision"]) document.getElementById(`sure-${part}`).hidden = !words[part];
  const form = dialog.querySelector("form");
  form.reset();
  dialog.returnValue = "";
  dialog.onclose = () => {
    button.focus();
    if (dialog.returnValue !== "yes") return;
    const given = {};
    if (words.why && form.why.value.trim()) given.why = form.why.value.trim();
    if (words.revision) given.revision = form.revision.value;
    send(given, button);
  };
  dialog.showModal();
}

async function send(given, button) {
  const verb = button.dataset.verb;
  const name = button.closest("[data-name]").dataset.name;
  const path = name.split("/").map(encodeURIComponent).join("/");
  tell("");
  button.setAttribute("aria-disabled", "true");
  try {
    const response = await post(`/api/v1/rollouts/${path}/${verb}`, { ...given, id: fresh() });
    if (response.status === 401) return location.assign("/login");
    const told = await response.json();
    if (!response.ok) tell(told.error.message, told.error.hint);
    else if (button.dataset.deletes) return location.assign("/");
    document.dispatchEvent(new Event("fairlead:changed"));
  } catch {
    tell("the server did not answer", "check this page once it is live again before you retry");
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

function post(path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
}

// Not randomUUID: pages over plain HTTP do not have it.
function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "page " + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function tell(message, hint) {
  answer.replaceChildren();
  if (!message) return;
  const said = document.createElement("p");
  said.className = "refused";
  said.textContent = `Not done: ${message}. ${hint ? "Hint: " + hint : ""}`;
  answer.append(said);
}

// Numbers are no events, so the feed is silent about them.
setInterval(() => {
  const follows = "follows" in document.getElementById("chart").dataset;
  if (follows && !document.hidden) document.dispatchEvent(new Event("fairlead:changed"));
}, EVERY);
