// What the pages of jobs, and lists, do beyond links and forms. Without it they work all the same.

// Rows that are ticked, and all at once.
const all = document.getElementById("tick-all")
const ticks = () => [...document.querySelectorAll("#bulk td input[name=id]")]
const count = () => {
	const n = ticks().filter(t => t.checked).length
	if (all) {
		all.checked = n > 0 && n === ticks().length
		all.indeterminate = n > 0 && !all.checked
	}
	for (const t of ticks()) t.closest("tr").setAttribute("aria-selected", t.checked)
	const said = document.getElementById("ticked")
	if (said) said.dataset.n = n || ""
	for (const b of document.querySelectorAll(".bulk button")) b.disabled = n === 0
}
all?.addEventListener("change", () => {
	for (const t of ticks()) t.checked = all.checked
	count()
})
document.getElementById("bulk")?.addEventListener("change", count)
if (document.getElementById("bulk")) addEventListener("pageshow", count)

// The addresses that a job may be run at are asked for once somebody wants to run it.
const offered = document.querySelector("[data-offered]")
offered?.closest("dialog").addEventListener("opened", async () => {
	const res = await fetch(offered.dataset.offered, {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}})
	if (res.status === 200) offered.innerHTML = await res.text()
}, {once: true})

// Whether a parameter that looks like JSON is some: a hint, and no more.
for (const area of document.querySelectorAll("textarea[data-json]")) {
	const hint = document.createElement("p")
	hint.className = "hint"
	hint.setAttribute("aria-live", "polite")
	area.after(hint)
	const look = () => {
		const text = area.value.trim()
		let which = ""
		if (/^[[{"]/.test(text)) {
			try {
				JSON.parse(text)
				which = "json-good"
			} catch {
				which = "json-bad"
			}
		}
		hint.textContent = which ? document.getElementById(which)?.textContent ?? "" : ""
		hint.hidden = hint.textContent === ""
	}
	area.addEventListener("input", look)
	look()
}
