// Exchanges the token behind # for a session, and shows who looks.
const base = document.documentElement.dataset.base;

async function ask(path, options = {}) {
  const response = await fetch(base + path, { credentials: "same-origin", ...options });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

async function session() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return ask("/api/session");
  history.replaceState(null, "", location.pathname + location.search);
  return ask("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
}

try {
  const shown = await session();
  document.body.textContent = `${shown.agent || "Tertulia"} ${shown.version}: you are its ${shown.role}.`;
} catch (error) {
  document.body.textContent = error.message;
}
