// What pages do beyond links and forms. Without it they work all the same.

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

// Refreshes wait while nobody looks, or somebody is at work in the region: a dialog is open, text
// is selected, or a control has what is not saved.
const busy = region => document.hidden || document.querySelector("dialog[open]") !== null ||
	!getSelection().isCollapsed && region.contains(getSelection().anchorNode) ||
	region.contains(document.activeElement) && document.activeElement.matches("input, select, textarea") ||
	document.body.dataset.live === "off"
document.addEventListener("htmx:before:request", e => {
	const region = e.target
	if (region.dataset?.hxTrigger?.startsWith("every") && busy(region)) e.preventDefault()
})

// Keys. Those of one letter do nothing while somebody writes.
const writing = e => e.target.closest?.("input, select, textarea, [contenteditable]") || e.ctrlKey || e.metaKey || e.altKey
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
	if (writing(e)) return
	if (before === "g") {
		const to = {j: "jobs", r: "runs", c: "changes"}[e.key]
		before = ""
		if (to) location.href = (root || "") + "/" + to
		return
	}
	before = e.key
	if (e.key === "j" || e.key === "k") step(e.key === "j" ? 1 : -1)
	const act = document.querySelector(`[data-key="${CSS.escape(e.key)}"]`)
	if (act) {
		e.preventDefault()
		act.focus()
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

// What a schedule means, while one types it.
const preview = document.querySelector("[data-preview]")
if (preview) {
	const form = preview.closest("form")
	let timer = 0, last = ""
	const show = async () => {
		const values = new URLSearchParams()
		for (const name of ["type", "conf", "zone", "dst"]) values.set(name, form.elements[name].value)
		if (values.toString() === last) return
		last = values.toString()
		try {
			const res = await fetch(preview.dataset.preview + "?" + last, {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}})
			if (res.ok && values.toString() === last) preview.innerHTML = await res.text()
		} catch { /* the next key asks again */ }
	}
	form.addEventListener("input", () => {
		clearTimeout(timer)
		timer = setTimeout(show, 300)
	})
	show()
}
