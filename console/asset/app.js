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
	const now = Number(document.body.dataset.now) + performance.now(), [s, min, h, day] = document.body.dataset.units.split("|")
	for (const t of document.querySelectorAll("time[datetime]:not([data-rel])")) {
		const at = Date.parse(t.dateTime) - now, d = Math.abs(at)
		const [n, unit] = d < 60e3 ? [d / 1e3, s] : d < 3600e3 ? [d / 60e3, min] : d < 172800e3 ? [d / 3600e3, h] : [d / 86400e3, day]
		t.dataset.ago = document.body.dataset[at < 0 ? "ago" : "in"].replace("{d}", unit.replace("{n}", Math.floor(n)))
	}
}
ages()
setInterval(ages, 10000)
addEventListener("htmx:after:swap", ages)

// What a row has no room for is told where the pointer is.
addEventListener("pointerover", e => {
	const cell = e.target.closest?.(".rows td")
	if (cell && getComputedStyle(cell).textOverflow === "ellipsis") cell.title = cell.scrollWidth > cell.clientWidth ? cell.innerText.trim() : ""
})

const partial = {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}}

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
		const to = {o: "overview", j: "jobs", r: "runs", t: "timetable", e: "executors", c: "changes"}[e.key]
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
