// What is refreshed, and what the header says of that. Nothing moves or changes under a hand: a
// refresh waits while somebody points at rows or acts, has a menu or a dialog open, has ticked or
// selected something, writes, or has gone further down the list.

const box = document.getElementById("live-state")
const words = document.getElementById("live-words")
const turn = document.getElementById("switch")
const sign = turn.querySelector("use"), signs = {live: "on", off: "planned", held: "off", away: "failed", out: "failed"}
const newer = document.getElementById("newer")
const login = document.getElementById("live-login")
const said = document.getElementById("said")
const foot = document.querySelector(".foot span"), time = /\d\d:\d\d:\d\d/
const partial = {headers: {"HX-Request": "true", "HX-Request-Type": "partial"}}

const polled = () => document.querySelector("#live[data-hx-get]")
const polls = el => el?.id === "live" && el.dataset.hxTrigger?.startsWith("every")
const off = () => document.body.dataset.live === "off"
const paused = () => document.hidden || off()

// Where the pointer is, unless it is a finger, which is nowhere once it has tapped.
let pointer = null
const follow = e => { pointer = e.pointerType === "touch" ? null : e }
addEventListener("pointermove", follow, {passive: true})
addEventListener("pointerdown", follow, {passive: true})
document.documentElement.addEventListener("pointerleave", () => { pointer = null })

const hands = "#live .rows tbody, #live .acts, #live .menu, .bulk, .pager"
const below = region => region.querySelector("[data-moves]") !== null && region.getBoundingClientRect().top < 0

// held is what a refresh of a region waits for, or "".
const held = region => {
	if (document.querySelector("dialog[open]")) return "dialog"
	if (region.querySelector("details.menu[open]")) return "menu"
	if (!getSelection().isCollapsed && region.contains(getSelection().anchorNode)) return "text"
	const at = document.activeElement
	if (region.contains(at) && at.matches("input:not([type=checkbox]), select, textarea")) return "typing"
	if (region.querySelector("input[type=checkbox]:checked")) return "ticked"
	if (at.matches(":focus-visible") && at.closest(hands)) return "focus"
	if (pointer && document.elementFromPoint(pointer.clientX, pointer.clientY)?.closest(hands)) return "pointer"
	return below(region) ? "below" : ""
}

// What is known of the server: when it was reached last, as this page and as the server counts, and
// whether it has said that nobody is logged in. A log is asked for when somebody is at its end, so
// what counts of it is whether asking has failed.
let good = performance.now(), clock = foot?.textContent.match(time)?.[0] ?? "", reached = clock, out = false
let logFails = 0    // since when, or 0
let refused = false // it has answered, and said no
let wanted = false  // somebody has asked for what is newer

// heard takes an answer. What does not say when it was read is none of ours: a login of the host's,
// where one was sent.
const heard = (status, read, log = false) => {
	const ours = status === 204 || status === 200 && read
	refused = status > 401 && status < 500
	if (ours || status) out = status === 401 || status === 200 && !read
	if (log) logFails = ours ? 0 : logFails || performance.now()
	if (ours) {
		if (!log) good = performance.now()
		reached = read ?? reached
	}
	tell()
}

// fresh has the region read at once.
const fresh = () => {
	good = performance.now()
	logFails = 0
	polled()?.dispatchEvent(new Event("fresh"))
	tell()
}

// count says how many rows a reading has that are not here yet.
const count = html => {
	const page = new DOMParser().parseFromString(html, "text/html")
	const n = [...page.querySelectorAll("tr[id]")].filter(row => !document.getElementById(row.id)).length
	newer.textContent = newer.dataset.newer.replace("{n}", n)
	newer.hidden = n === 0
}
const look = async region => {
	const res = await fetch(region.dataset.hxGet, partial)
	const read = res.headers.get("X-Read"), html = await res.text()
	if (res.status === 200 && read) count(html)
	if (res.status === 204) shown(read)
	heard(res.status, read)
}

// shown notes that what is on the page is what there was at a time.
const shown = read => {
	newer.hidden = true
	clock = read ?? clock
	if (foot) foot.textContent = foot.textContent.replace(time, clock)
}

document.addEventListener("htmx:before:request", e => {
	const region = e.target
	if (!polls(region) || wanted && !paused()) return
	const why = paused() || held(region)
	if (!why) return
	e.preventDefault()
	if (!paused()) look(region).catch(tell)
})
document.addEventListener("htmx:after:request", e => {
	const region = e.target, ctx = e.detail?.ctx, res = ctx?.response?.raw ?? ctx?.response
	if (!polls(region) || !res) return
	const read = res.headers?.get?.("X-Read"), ours = res.status === 204 || res.status === 200 && read
	if (res.status === 200 && (!read || held(region) && !wanted)) {
		e.preventDefault()
		if (read) count(ctx.text)
	} else if (ours) {
		shown(read)
		wanted = false
	}
	heard(res.status, read)
})
// A log that is followed asks here whether it may go on, and says what it was answered.
addEventListener("wanted", e => { if (paused()) e.preventDefault() })
addEventListener("read", e => heard(e.detail.status, e.detail.read, true))
newer.addEventListener("click", () => {
	scrollTo(0, 0)
	const region = polled()
	wanted = region !== null && !["ticked", "menu", "typing", "text"].includes(held(region))
	if (wanted) fresh()
})
document.addEventListener("visibilitychange", () => { if (!paused()) fresh() })

// tell says in the header how it is: live, or what it waits for, or since when nobody has answered.
let kind = ""
const tell = () => {
	const region = polled()
	box.hidden = !region && !document.querySelector("[data-follow]")
	if (box.hidden) return
	const most = Math.max(10, parseInt(region?.dataset.hxTrigger.match(/\d+/) ?? 0) + 3) * 1000
	const away = !paused() && (region !== null && performance.now() - good > most || logFails > 0 && performance.now() - logFails > 10000)
	const why = region && !off() ? held(region) : ""
	const now = out ? "out" : off() ? "off" : away ? "away" : why ? "held" : "live"
	const text = words.dataset[now === "held" ? why : now === "away" && refused ? "refused" : now].replace("{time}", now === "away" ? reached : clock)
	if (words.textContent !== text) words.textContent = text
	turn.title = now === "live" ? "" : words.dataset.as.replace("{time}", clock)
	login.hidden = now !== "out" || !document.body.dataset.login
	if (now !== "held" && now !== "off") newer.hidden = true
	if (kind === now) return
	box.dataset.state = now
	sign.setAttribute("href", "#s-" + signs[now])
	if (["out", "away"].includes(now) || ["out", "away"].includes(kind)) said.textContent = text
	kind = now
}
if (document.body.dataset.login) login.href = document.body.dataset.login
turn.addEventListener("click", () => {
	const on = off()
	if (on) delete document.body.dataset.live
	else document.body.dataset.live = "off"
	turn.setAttribute("aria-pressed", on)
	said.textContent = on ? turn.dataset.resumed : turn.dataset.paused
	if (on) fresh()
	else tell()
	fetch(turn.dataset.look, {...partial, method: "POST", body: new URLSearchParams({live: on ? "" : "off"})}).catch(() => {})
})
tell()
setInterval(tell, 500)

// A page that the store had no answer for is asked for again until it has one. Until then it shows
// what has changed at this process.
if (document.querySelector("[data-again]")) setInterval(async () => {
	if (document.hidden) return
	const res = await fetch(location.href).catch(() => null)
	if (!res) return
	if (res.status < 500 && res.status !== 429) return location.reload()
	const now = new DOMParser().parseFromString(await res.text(), "text/html").querySelector(".away")
	if (now) document.querySelector(".away")?.replaceWith(now)
}, 5000)

// The numbers of presets and of the rail stand outside of the region, which brings those of its time.
addEventListener("htmx:after:swap", () => {
	for (const n of document.querySelectorAll("#counts span")) {
		const at = document.querySelector(`[data-count="${n.dataset.of}"]`)
		if (at && at.textContent !== n.textContent) at.textContent = n.textContent
	}
})
