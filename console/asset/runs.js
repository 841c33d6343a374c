// Following a log. Without it the pages of logs work all the same.

const partial = {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}}
const paused = () => document.hidden || document.body.dataset.live === "off"

// A log. The view stays at the end unless somebody has gone up, and no more than 5,000 lines are
// kept: those that are taken out are fetched again when somebody wants them.
const most = 5000, atOnce = 400
const log = document.querySelector("[data-log]")
const numberOf = line => Number(line?.id.slice(1))
const count = () => {
	const said = document.querySelector("[data-log-lines]")
	if (!said) return
	const all = log.querySelectorAll(".line")
	said.textContent = said.dataset.logLines.replace("{from}", numberOf(all[0])).replace("{to}", numberOf(all[all.length - 1]))
}

// earlierLink leads to the lines before those that are here.
const earlierLink = () => {
	const first = numberOf(log.querySelector(".line"))
	let link = document.querySelector("[data-log-earlier]")
	if (!(first > 1)) {
		link?.remove()
		return
	}
	if (!link) return
	link.dataset.logEarlier = first
	link.href = `${log.dataset.log}?from=${Math.max(1, first - atOnce)}&to=${first - 1}`
}

const earlier = async link => {
	const first = Number(link.dataset.logEarlier)
	const res = await fetch(`${log.dataset.log}?from=${Math.max(1, first - atOnce)}&to=${first - 1}`, partial)
	if (res.status !== 200) return
	const from = log.scrollHeight
	log.insertAdjacentHTML("afterbegin", await res.text())
	log.scrollTop += log.scrollHeight - from
	earlierLink()
	count()
}

const add = html => {
	const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4
	log.querySelector(".nothing")?.remove()
	log.insertAdjacentHTML("beforeend", html)
	if (atEnd) {
		while (log.childElementCount > most) log.firstElementChild.remove()
		log.scrollTop = log.scrollHeight
		earlierLink()
	}
	count()
}

// Who wants to read in peace can stop the following, and go on with it.
const toggle = document.querySelector("[data-log-follow]")
const follows = () => toggle?.getAttribute("aria-pressed") !== "false"
toggle?.addEventListener("click", () => toggle.setAttribute("aria-pressed", String(!follows())))

// follow adds lines once a second, until the run has ended and all of them are here.
const follow = async () => {
	if (!paused() && follows()) {
		try {
			const res = await fetch(log.dataset.follow + "?from=" + log.dataset.next, partial)
			if (res.status === 200) add(await res.text())
			if (res.ok) {
				log.dataset.next = res.headers.get("X-Log-Next") ?? log.dataset.next
				if (res.headers.get("X-Log-End")) {
					document.querySelector("[data-log-next]")?.remove()
					toggle?.remove()
					return
				}
			}
		} catch { /* it is asked again */ }
	}
	setTimeout(follow, 1000)
}

// A link to a line leads to where it is, if it is not on this page.
const toLine = () => {
	const no = location.hash.match(/^#L(\d{1,9})$/)?.[1]
	if (!no || !log) return
	const line = document.getElementById("L" + no)
	if (line) line.scrollIntoView({block: "center"})
	else if (!new URLSearchParams(location.search).has("from")) location.replace(`${log.dataset.log}?from=${Math.max(1, no - 20)}#L${no}`)
}

if (log) {
	if (log.dataset.tail !== undefined && !location.hash) log.scrollTop = log.scrollHeight
	toLine()
	addEventListener("hashchange", toLine)
	document.addEventListener("click", e => {
		const link = e.target.closest?.("[data-log-earlier]")
		if (link && !e.ctrlKey && !e.metaKey) {
			e.preventDefault()
			earlier(link).catch(() => { location.href = link.href })
		}
		const no = e.target.closest?.(".log .no")
		if (no && !e.ctrlKey && !e.metaKey) {
			e.preventDefault()
			history.replaceState(null, "", no.href)
			document.querySelector(".log .line.marked")?.classList.remove("marked")
			no.parentElement.classList.add("marked")
		}
	})
	if (log.dataset.follow) {
		if (toggle) toggle.hidden = false
		setTimeout(follow, 1000)
	}
}
