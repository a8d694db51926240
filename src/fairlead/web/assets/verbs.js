// The verbs of what a page shows: asked in a dialog where the way back is long, sent once each,
// and answered in words. A group of buttons says where its verbs are sent to (data-at).
const answer = document.getElementById("answer");
const dialog = document.getElementById("sure");
const part = (name) => document.getElementById(`sure-${name}`);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verb]");
  if (!button || button.getAttribute("aria-disabled")) return;
  // Whoever approves means what this page showed.
  const given = button.dataset.revision ? { revision: button.dataset.revision } : {};
  if (button.dataset.dialog) ask(JSON.parse(button.dataset.dialog), given, button);
  else send(given, button);
});

// Not a submit button: Enter in the reason means yes.
part("no").addEventListener("click", () => dialog.close());

function ask(words, given, button) {
  for (const each of ["title", "text", "yes"]) part(each).textContent = words[each];
  part("yes").classList.toggle("danger", words.danger);
  part("why").hidden = !words.why;
  if (part("revision")) part("revision").hidden = !words.revision;
  const form = dialog.querySelector("form");
  form.reset();
  dialog.returnValue = "";
  dialog.onclose = () => {
    button.focus();
    if (dialog.returnValue !== "yes") return;
    if (words.why && form.why.value.trim()) given.why = form.why.value.trim();
    if (words.revision && form.revision) given.revision = form.revision.value;
    send(given, button);
  };
  dialog.showModal();
}

async function send(given, button) {
  const at = button.closest("[data-at]").dataset.at;
  const body = JSON.stringify({ ...given, id: fresh() });
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  tell("");
  button.setAttribute("aria-disabled", "true");
  try {
    const response = await fetch(`${at}/${button.dataset.verb}`, { method: "POST", headers, body });
    if (response.status === 401) return location.assign("/login");
    const told = await response.json();
    if (!response.ok) tell(told.error.message, told.error.hint);
    else if (button.dataset.deletes) return location.assign(button.dataset.deletes);
    document.dispatchEvent(new Event("fairlead:changed"));
  } catch {
    tell("the server did not answer", "check this page once it is live again before you retry");
  } finally {
    button.removeAttribute("aria-disabled");
  }
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
