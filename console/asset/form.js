// What the form of a job does beyond a form. Without it it works all the same.

// The builder of expressions. It knows how one is written, and nothing of what it means: that the
// server says.
const builder = document.getElementById("builder")
if (builder) {
	const form = document.getElementById("jobform")
	const at = id => document.getElementById(id)
	const names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

	// build is the expression, its dialect, and which hint belongs to it.
	const build = () => {
		const kind = at("b-kind").value
		const whole = (id, least, most) => Math.min(most, Math.max(least, Math.trunc(Number(at(id).value)) || least))
		const [hour, minute, second] = (at("b-time").value || "00:00").split(":").map(Number)
		const days = [...builder.querySelectorAll("[data-day]:checked")].map(d => d.value)
		const n = whole("b-n", 1, kind === "hours" ? 23 : 59)
		let type = form.elements.type.value === "CRONTAB" ? "CRONTAB" : "CRON"
		if (type === "CRONTAB" && ["seconds", "last", "nth", "near"].includes(kind)) {
			type = "CRON"
			return {...quartz(), type, hint: "quartz"}
		}
		return type === "CRON" ? {...quartz(), type} : {...crontab(), type}

		function uneven(of) {
			return of % n === 0 ? "" : "steps"
		}
		function quartz() {
			const clock = `${second || 0} ${minute} ${hour}`
			switch (kind) {
			case "seconds": return {text: `0/${n} * * * * ?`, hint: uneven(60)}
			case "minutes": return {text: `0 0/${n} * * * ?`, hint: uneven(60)}
			case "hours": return {text: `0 ${whole("b-minute", 0, 59)} 0/${n} * * ?`, hint: uneven(24)}
			case "weekly": return {text: `${clock} ? * ${days.join(",") || "MON"}`}
			case "day": return {text: `${clock} ${whole("b-day", 1, 31)} * ?`}
			case "last": return {text: `${clock} L * ?`}
			case "nth": {
				const which = at("b-which").value
				const day = days[0] ?? "MON"
				return {text: which === "L" ? `${clock} ? * ${names.indexOf(day) + 1}L` : `${clock} ? * ${day}#${which}`}
			}
			case "near": return {text: `${clock} ${whole("b-day", 1, 31)}W * ?`}
			}
			return {text: `${clock} * * ?`}
		}
		function crontab() {
			const hint = second ? "crontab" : ""
			switch (kind) {
			case "minutes": return {text: `*/${n} * * * *`, hint: uneven(60)}
			case "hours": return {text: `${whole("b-minute", 0, 59)} */${n} * * *`, hint: uneven(24)}
			case "weekly": return {text: `${minute} ${hour} * * ${days.join(",") || "MON"}`, hint}
			case "day": return {text: `${minute} ${hour} ${whole("b-day", 1, 31)} * *`, hint}
			}
			return {text: `${minute} ${hour} * * *`, hint}
		}
	}
	const show = () => {
		const kind = at("b-kind").value
		for (const part of builder.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind)
		const built = build()
		at("b-shown").textContent = built.text
		for (const hint of builder.querySelectorAll("[data-text]")) hint.hidden = hint.dataset.text !== built.hint
	}
	builder.hidden = false
	builder.addEventListener("input", e => {
		if (e.target.matches("[data-day]") && at("b-kind").value === "nth") { // one of them
			for (const d of builder.querySelectorAll("[data-day]")) d.checked = d === e.target
		}
		show()
		e.stopPropagation()
	})
	form.elements.type.addEventListener("change", show)
	at("b-write").addEventListener("click", () => {
		const built = build()
		form.elements.type.value = built.type
		form.elements.conf.value = built.text
		form.elements.conf.dispatchEvent(new Event("input", {bubbles: true}))
		form.elements.conf.focus()
		show()
		if (built.hint === "quartz") builder.querySelector("[data-text=quartz]").hidden = false
	})
	show()
}
