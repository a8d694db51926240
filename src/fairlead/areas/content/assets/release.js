// The verbs of one release: asked in a dialog where they have one, sent once each, answered in words.
const answer = document.getElementById("answer");
const dialog = document.getElementById("sure");
const part = (name) => document.getElementById(`sure-${name}`);

part("no").addEventListener("click", () => dialog.close());
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-verb]");
  if (!button || button.getAttribute("aria-disabled")) return;
  // Whoever approves means the version that this page showed.
  const given = button.dataset.revision ? { revision: button.dataset.revision } : {};
  if (button.dataset.dialog) ask(JSON.parse(button.dataset.dialog), given, button);
  else send(given, button);
});

function ask(words, given, button) {
  for (const each of ["title", "text", "yes"]) part(each).textContent = words[each];
  part("yes").classList.toggle("danger", words.danger);
  part("why").hidden = !words.why;
  const form = dialog.querySelector("form");
  form.reset();
  dialog.returnValue = "";
  dialog.onclose = () => {
    button.focus();
    if (dialog.returnValue !== "yes") return;
    send(words.why ? { ...given, why: form.why.value.trim() } : given, button);
  };
  dialog.showModal();
}

async function send(given, button) {
  const name = button.closest("[data-name]").dataset.name.split("/").map(encodeURIComponent).join("/");
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16));
  const body = JSON.stringify({ ...given, id: `page ${bytes.join("-")}` });
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  say("");
  button.setAttribute("aria-disabled", "true");
  try {
    const url = `/api/v1/releases/${name}/${button.dataset.verb}`;
    const response = await fetch(url, { method: "POST", headers, body });
    if (response.status === 401) return location.assign("/login");
    const { error } = await response.json();
    if (!response.ok) say(`Not done: ${error.message}. Hint: ${error.hint}`);
    document.dispatchEvent(new Event("fairlead:changed"));
  } catch {
    say("Not done: the server did not answer. Look at this page once it is live again.");
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

function say(text) {
  answer.replaceChildren();
  if (!text) return;
  const said = document.createElement("p");
  said.className = "refused";
  said.textContent = text;
  answer.append(said);
}
