// Jobs are offered by a part of their names while one types. Without it names are typed as they are.

const found = document.getElementById("found")
let asks = 0
addEventListener("input", e => {
	const at = e.target
	if (!at.matches?.("[list=found]")) return
	clearTimeout(asks)
	const id = at.value.match(/^#(\d+) /)?.[1]
	if (id && [...found.options].some(o => o.value === at.value)) return add(at, id)
	if (!at.value.trim()) return
	asks = setTimeout(async () => {
		const res = await fetch(found.dataset.find + "?text=" + encodeURIComponent(at.value.trim()), {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}})
		if (res.status === 200) found.innerHTML = await res.text()
	}, 250)
})

// add puts one that was chosen to the others of its field.
const add = (at, id) => {
	const ids = at.form.elements[at.dataset.adds ?? ""]
	if (!ids) return
	const list = ids.value.split(/[\s,;]+/).filter(Boolean)
	if (!list.includes(id)) {
		ids.value = [...list, id].join(", ")
		const line = document.createElement("li")
		line.textContent = at.value
		document.getElementById("named-" + at.dataset.adds).append(line)
	}
	at.value = ""
}
