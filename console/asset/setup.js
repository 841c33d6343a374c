// The code for the first user comes behind the # of the printed link, where no server sees it.
const code = document.getElementById("code")
if (code && location.hash.length > 1 && !code.value) {
	code.value = decodeURIComponent(location.hash.slice(1))
	history.replaceState(null, "", location.pathname)
	document.getElementById("name")?.focus()
}
