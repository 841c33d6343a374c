// What pages do beyond links and forms. Without it they work all the same. What is of use with
// scripts only is hidden without.
document.documentElement.dataset.js = ""

// The zone of the browser, for who has chosen none: the next page has it.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
const root = new URL(document.body.dataset.root, location.href).pathname.replace(/\/$/, "")
const known = document.cookie.split("; ").find(c => c.startsWith("xxljob_zone="))
if (zone && known !== "xxljob_zone=" + zone) {
	document.cookie = `xxljob_zone=${zone}; path=${root || "/"}; max-age=31536000; samesite=lax`
}

// A menu closes when one leaves it, and by Escape.
document.addEventListener("click", e => {
	for (const menu of document.querySelectorAll("details.menu[open]")) {
		if (!menu.contains(e.target)) menu.open = false
	}
})
document.addEventListener("keydown", e => {
	if (e.key !== "Escape") return
	const menu = document.querySelector("details.menu[open]")
	if (menu) {
		menu.open = false
		menu.querySelector("summary").focus()
	}
})

// How long ago a time was, or when it will be, stands beside it, by the clock of the server.
const ages = () => {
	const now = Number(document.body.dataset.now) + performance.now()
	for (const t of document.querySelectorAll("time[datetime]:not([data-rel])")) {
		const at = Date.parse(t.dateTime) - now, d = Math.abs(at)
		const [n, unit] = d < 60e3 ? [d / 1e3, "s"] : d < 3600e3 ? [d / 60e3, "min"] : d < 172800e3 ? [d / 3600e3, "h"] : [d / 86400e3, "d"]
		t.dataset.ago = document.body.dataset[at < 0 ? "ago" : "in"].replace("{d}", Math.floor(n) + " " + unit)
	}
}
ages()
setInterval(ages, 10000)
addEventListener("htmx:after:swap", ages)

// Refreshes wait while nobody looks, or somebody is at work in the region: a dialog is open, text
// is selected, or a control has what is not saved.
const busy = region => paused() || document.querySelector("dialog[open]") !== null ||
	!getSelection().isCollapsed && region.contains(getSelection().anchorNode) ||
	region.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")
document.addEventListener("htmx:before:request", e => {
	const region = e.target
	if (region.dataset?.hxTrigger?.startsWith("every") && busy(region)) e.preventDefault()
})
const partial = {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}}
const paused = () => document.hidden || document.body.dataset.live === "off"

// A region waits as well while rows of it are chosen, and while somebody has gone further down
// the list, so that nothing jumps: then it is said how many rows there are above that are new.
const stale = document.getElementById("stale")
const newer = document.getElementById("newer")
const foot = document.querySelector(".foot span"), time = /\d\d:\d\d:\d\d/
let good = performance.now(), clock = foot?.textContent.match(time)?.[0] ?? ""
const below = region => region.querySelector("[data-moves]") !== null && region.getBoundingClientRect().top < 0
const countNewer = async region => {
	const res = await fetch(region.dataset.hxGet, partial)
	if (res.status !== 200) return
	const page = new DOMParser().parseFromString(await res.text(), "text/html")
	const n = [...page.querySelectorAll("tr[id]")].filter(row => !document.getElementById(row.id)).length
	newer.textContent = newer.dataset.newer.replace("{n}", n)
	newer.hidden = n === 0
}
newer?.addEventListener("click", () => scrollTo(0, 0))
document.addEventListener("htmx:before:request", e => {
	const region = e.target
	if (!region.dataset?.hxTrigger?.startsWith("every")) return
	const scrolled = below(region)
	if (newer && !scrolled) newer.hidden = true
	if (!scrolled && !region.querySelector("input[type=checkbox]:checked")) return
	e.preventDefault()
	if (newer && scrolled && !paused()) countNewer(region).catch(() => {})
})
document.addEventListener("htmx:after:request", e => {
	const res = e.detail?.ctx?.response?.raw ?? e.detail?.ctx?.response
	const read = res?.headers?.get?.("X-Read")
	if (!read) return
	good = performance.now()
	clock = read
	if (foot) foot.textContent = foot.textContent.replace(time, read)
})

// What is shown is marked as old when it was not read for ten seconds, for whatever reason; where it is
// not read more often than that, when a reading is late.
if (stale) {
	setInterval(() => {
		const region = document.querySelector("#live[data-hx-get]")
		const most = Math.max(10, parseInt(region?.dataset.hxTrigger?.match(/\d+/) ?? 0) + 3) * 1000
		const old = region && !paused() && performance.now() - good > most
		if (old) stale.textContent = stale.dataset.stale.replace("{time}", clock)
		stale.hidden = !old
	}, 1000)
}

addEventListener("htmx:before:request", e => { if (!e.defaultPrevented) begin() })
addEventListener("htmx:finally:request", () => end())

// What takes longer than a moment shows a bar, and the old content stays: a request of a part, or
// the way to another page, which has come to its end when this one is left, or is not left at all.
const loading = document.getElementById("loading")
let waits = 0, bar = 0
const begin = () => { if (waits++ === 0) bar = setTimeout(() => { loading.hidden = false }, 300) }
const end = () => {
	if (waits === 0 || --waits > 0) return
	clearTimeout(bar)
	loading.hidden = true
}
const leave = e => {
	if (e.defaultPrevented) return
	begin()
	setTimeout(end, 15000)
}
addEventListener("click", e => {
	const link = e.target.closest?.("a[href]")
	if (link && e.button === 0 && !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.altKey && !link.hasAttribute("download") && link.origin === location.origin &&
		!(link.hash && link.pathname + link.search === location.pathname + location.search)) leave(e)
})
addEventListener("submit", e => { if (!e.submitter?.matches("[data-file]")) leave(e) })
addEventListener("pageshow", () => {
	waits = 0
	clearTimeout(bar)
	loading.hidden = true
})

// The switch of all refreshing. What somebody chooses is kept.
const live = document.getElementById("switch")
if (live && document.querySelector("#live[data-hx-get], [data-follow]")) live.hidden = false
live?.addEventListener("click", () => {
	const on = document.body.dataset.live === "off"
	if (on) delete document.body.dataset.live
	else document.body.dataset.live = "off"
	live.setAttribute("aria-pressed", on)
	document.getElementById("said").textContent = on ? live.dataset.resumed : live.dataset.paused
	fetch(live.dataset.look, {...partial, method: "POST", body: new URLSearchParams({live: on ? "" : "off"})}).catch(() => {})
})

// Keys. Those of one letter do nothing while somebody writes, or where they are turned off, and
// nothing behind a dialog.
const writing = e => e.target.closest?.("input:not([type=checkbox]), select, textarea, [contenteditable]") || e.ctrlKey || e.metaKey || e.altKey ||
	document.body.dataset.keys === "off" || document.querySelector("dialog[open]")
let before = ""
document.addEventListener("keydown", e => {
	if ((e.ctrlKey || e.metaKey) && e.key === "k" || e.key === "/" && !writing(e)) {
		const search = document.getElementById("search")
		if (search) {
			e.preventDefault()
			search.focus()
		}
		return
	}
	if (writing(e)) {
		before = ""
		return
	}
	if (e.repeat && e.key !== "j" && e.key !== "k") return // it is held: what it does is done once
	if (before === "g") {
		const to = {j: "jobs", r: "runs", c: "changes"}[e.key]
		before = ""
		if (to) location.href = (root || "") + "/" + to
		return
	}
	before = e.key
	if (e.key === "?") document.getElementById("keys")?.showModal()
	if (e.key === "j" || e.key === "k") step(e.key === "j" ? 1 : -1)
	if (e.key === "x") document.activeElement.closest?.(".rows tr")?.querySelector("input[name=id]")?.click()
	const act = document.querySelector(`[data-key="${CSS.escape(e.key)}"]`)
	if (act) {
		e.preventDefault()
		act.focus({preventScroll: true})
		act.click()
	}
})

// step goes to the next row of the list, or the one before.
const step = n => {
	const rows = [...document.querySelectorAll(".rows a.row")]
	if (rows.length === 0) return
	const at = rows.indexOf(document.activeElement)
	rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + n))].focus()
}

// Buttons that open a dialog, and that close it. The key that opens one must not press what has
// the focus there.
const opens = e => {
	const button = e.target.closest?.("[data-opens]")
	if (!button) return
	e.preventDefault()
	const dialog = document.getElementById(button.dataset.opens)
	dialog?.showModal()
	dialog?.dispatchEvent(new Event("opened"))
}
document.addEventListener("keydown", e => {
	if (e.key === "Enter" && !e.repeat) opens(e)
})
document.addEventListener("click", e => {
	opens(e)
	if (e.target.closest?.("[data-closes]")) {
		e.preventDefault()
		e.target.closest("dialog")?.close()
	}
})

// What a schedule means, while one types it. It ends with that of the last text, also where that
// was asked for too often, or nobody has answered at first.
const preview = document.querySelector("[data-preview]")
if (preview) {
	const form = preview.closest("form")
	let timer = 0, asked = "", since = 0 // since when one may ask again
	const later = wait => {
		clearTimeout(timer)
		timer = setTimeout(show, Math.max(wait, since - Date.now()))
	}
	const show = async () => {
		const values = new URLSearchParams()
		for (const name of ["type", "conf", "zone", "dst"]) values.set(name, form.elements[name].value)
		const now = values.toString()
		if (now === asked) return
		asked = now
		let wait = 5
		try {
			const res = await fetch(preview.dataset.preview + "?" + now, partial)
			const html = await res.text()
			if (now !== asked) return // another one was asked for since
			if (res.ok) {
				preview.innerHTML = html
				ages()
				return
			}
			wait = Number(res.headers.get("Retry-After"))
		} catch { /* nobody has answered */ }
		if (now !== asked || !(wait > 0)) return
		asked = ""
		since = Date.now() + wait * 1000
		later(0)
	}
	form.addEventListener("input", () => later(300))
	show()
}
