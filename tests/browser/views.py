"""The views of a page, by their addresses: of its liveliest place, its newest run, and who wrote most."""

from browser.visits import Visit


async def all_views(visited: Visit) -> dict[str, str]:
    """Return the address of each view, with something to show in it."""
    places = await visited.ask("/places")
    place = max(places, key=lambda row: row["messages"])["key"]
    messages = (await visited.ask(f"/places/{place}"))["messages"]
    answer = [row["message"]["id"] for row in messages if row.get("wrote")][-1]
    runs = await visited.ask("/runs")
    strips = (await visited.ask(f"/places/{place}/strata"))["strips"]
    a, b = (f"{strip['run_id']}.{strip['step']}" for strip in strips[:2])
    person = max(await visited.ask("/people"), key=lambda row: row["facts"])["key"]
    failed = next((row["run"]["id"] for row in runs if row["run"].get("status") == "failed"), None)
    return {
        "home": "/",
        "places": "/places",
        "place": f"/p/{place}",
        "strata": f"/p/{place}/strata",
        "difference": f"/p/{place}/strata?a={a}&b={b}",
        "decisions": f"/p/{place}/decisions",
        "memory of a place": f"/p/{place}/memory",
        "what it knew": f"/p/{place}/m/{answer}/why",
        "runs": "/runs",
        "run": f"/run/{runs[0]['run']['id']}",
        "wire": f"/run/{runs[0]['run']['id']}?tab=wire",
        **({"failed run": f"/run/{failed}"} if failed else {}),
        "people": "/people",
        "person": f"/people/{person}",
        "outbox": "/outbox",
        "media": "/media",
        "tasks": "/tasks",
        "usage": "/usage",
        "search": "/search?q=valve",
        "nowhere": "/nowhere",
    }
