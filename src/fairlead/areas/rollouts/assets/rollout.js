// Numbers are no events, so the feed is silent about them.
const EVERY = 2000;
setInterval(() => {
  const follows = "follows" in document.getElementById("chart").dataset;
  if (follows && !document.hidden) document.dispatchEvent(new Event("fairlead:changed"));
}, EVERY);
