// Following a log. Without it the pages of logs work all the same.

const partial = {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}}
// Whether anything is read at all is for the script to say that keeps the state of the page.
const paused = () => !dispatchEvent(new Event("wanted", {cancelable: true}))

// A log. The page has a part of it without a gap, of 5,000 lines at most: those that are taken out
// above or below are fetched again when somebody wants them. The view stays at the end of the log
// unless somebody has gone up.
const most = 5000, atOnce = 400
const log = document.querySelector("[data-log]")
const link = name => document.querySelector(`[data-log-${name}]`)
const numberOf = line => Number(line?.id.slice(1))
const first = () => numberOf(log.querySelector(".line"))
const last = () => numberOf(log.lastElementChild)
const atEnd = () => log.scrollTop + log.clientHeight >= log.scrollHeight - 4
let whole = log?.dataset.follow === undefined // nothing more will be written
let live = log?.dataset.tail !== undefined // the last line here was the last there is

// fetched are lines from one on, up to another.
const fetched = async (from, to) => {
	const tell = (status, read) => dispatchEvent(new CustomEvent("read", {detail: {status, read}}))
	const res = await fetch(`${log.dataset.log}?from=${from}` + (to ? `&to=${to}` : ""), partial).catch(e => { tell(0); throw e })
	tell(res.status, res.headers.get("X-Read"))
	if (!res.ok) throw new Error(res.status)
	return {html: res.status === 200 ? await res.text() : "", whole: res.headers.get("X-Log-End") !== null}
}

// tell says which lines are here, and leads to those that are not.
const tell = () => {
	if (!(first() >= 1)) return
	const said = link("lines")
	if (said) {
		const total = live ? last() : said.dataset.total > 0 ? Math.max(said.dataset.total, last()) : 0
		said.dataset.total = total
		said.textContent = (total === 0 ? said.dataset.logLines : whole ? said.dataset.of : said.dataset.sofar).replace("{from}", first()).replace("{to}", last()).replace("{total}", total)
	}
	if (link("earlier")) {
		link("earlier").hidden = first() <= 1
		link("earlier").href = `${log.dataset.log}?from=${Math.max(1, first() - atOnce)}&to=${first() - 1}`
	}
	if (link("later")) {
		link("later").hidden = whole && live
		link("later").href = `${log.dataset.log}?from=${last() + 1}`
	}
	if (link("end")) link("end").hidden = live
	if (find?.value) sought()
}

// earlier adds the lines before those that are here; what one sees stays where it is.
const earlier = async () => {
	const {html} = await fetched(Math.max(1, first() - atOnce), first() - 1)
	const high = log.scrollHeight
	log.insertAdjacentHTML("afterbegin", html)
	log.scrollTop += log.scrollHeight - high
	for (; log.childElementCount > most; live = false) log.lastElementChild.remove()
	tell()
}

// later adds the lines behind those that are here, and reports whether there were as many as come
// at a time.
const later = async () => {
	const next = last() > 0 ? last() + 1 : Number(log.dataset.next) || 1
	const got = await fetched(next)
	log.querySelector(".nothing")?.remove()
	const stays = !live || !atEnd()
	log.insertAdjacentHTML("beforeend", got.html)
	const full = last() + 1 - next >= atOnce
	whole ||= got.whole
	live = !full
	const high = log.scrollHeight
	while (log.childElementCount > most) log.firstElementChild.remove()
	if (stays) log.scrollTop -= high - log.scrollHeight
	else log.scrollTop = log.scrollHeight
	tell()
	return full
}

// Who wants to read in peace can stop the following, and go on with it.
const toggle = link("follow")
const follows = () => toggle?.getAttribute("aria-pressed") !== "false"
toggle?.addEventListener("click", () => toggle.setAttribute("aria-pressed", String(!follows())))

// once does one thing after the other.
let done = Promise.resolve()
const once = what => done = done.catch(() => {}).then(what)

// follow adds lines once a second, and at once where there are many, until nothing more will come:
// for who is at the end, and else for as long as there is room.
const follow = async () => {
	let full = false
	const wanted = atEnd() || live && log.childElementCount < most
	if (!paused() && follows() && wanted && !(whole && live)) {
		try {
			full = await once(later)
		} catch { /* it is asked again */ }
	}
	if (whole && live) {
		toggle?.remove()
		delete log.dataset.follow
	}
	setTimeout(follow, full ? 50 : 1000)
}

// What is written where one looks for something is looked for here, as one types; Enter goes
// through the whole log. The arrows lead from line to line.
const find = document.getElementById("find")
const sought = () => {
	const text = find.value.toLowerCase(), said = link("here")
	let n = 0
	for (const line of log.querySelectorAll(".line")) {
		const has = text !== "" && line.lastElementChild.textContent.toLowerCase().includes(text)
		line.classList.toggle("hit", has)
		n += has
	}
	if (!said) return
	said.hidden = text === ""
	said.textContent = said.dataset.logHere.replace("{n}", n)
}
const toHit = down => {
	const hits = [...log.querySelectorAll(".hit")], at = hits.findIndex(line => line.classList.contains("marked"))
	if (hits.length === 0) return
	const to = hits[(at < 0 ? down ? 0 : hits.length - 1 : at + (down ? 1 : -1) + hits.length) % hits.length]
	mark(to)
	to.scrollIntoView({block: "center"})
}
const mark = line => {
	log.querySelector(".line.marked")?.classList.remove("marked")
	line.classList.add("marked")
}

// Lines that are longer than the page are wrapped, or not. What somebody chooses is kept.
const wrap = document.querySelector("[data-log-wrap]")
wrap?.addEventListener("submit", e => {
	e.preventDefault()
	const off = document.body.dataset.wrap !== "off", button = wrap.querySelector("button")
	if (off) document.body.dataset.wrap = "off"
	else delete document.body.dataset.wrap
	button.setAttribute("aria-pressed", String(!off))
	button.value = off ? "" : "off"
	fetch(wrap.action, {...partial, method: "POST", body: new URLSearchParams({wrap: off ? "off" : ""})}).catch(() => {})
})

// A link to a line leads to where it is, if it is not on this page.
const toLine = () => {
	const no = location.hash.match(/^#L(\d{1,9})$/)?.[1]
	if (!no || !log) return
	const line = document.getElementById("L" + no)
	if (line) line.scrollIntoView({block: "center"})
	else if (!new URLSearchParams(location.search).has("from")) location.replace(`${log.dataset.log}?from=${Math.max(1, no - 20)}#L${no}`)
}

if (log) {
	if (live && !location.hash) log.scrollTop = log.scrollHeight
	toLine()
	addEventListener("hashchange", toLine)
	document.addEventListener("click", e => {
		if (e.ctrlKey || e.metaKey) return
		const to = e.target.closest?.("[data-log-earlier], [data-log-later]")
		if (to) {
			e.preventDefault()
			once(to === link("earlier") ? earlier : later).catch(() => { location.href = to.href })
		}
		const no = e.target.closest?.(".log .no")
		if (no) {
			e.preventDefault()
			history.replaceState(null, "", no.href)
			mark(no.parentElement)
		}
	})
	if (log.dataset.found === undefined) {
		find?.addEventListener("input", sought)
		find?.addEventListener("keydown", e => {
			if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return
			e.preventDefault()
			toHit(e.key === "ArrowDown")
		})
		if (toggle) toggle.hidden = false
		setTimeout(follow, 1000)
	}
}
