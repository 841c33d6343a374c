package browser

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed axe/axe.min.js
var axe string

// rules runs axe-core with the rules for levels A and AA, and says what it has found. What sticks to
// an edge of the window goes where it belongs meanwhile: it lies over whatever the page is scrolled
// to, and would be taken for a neighbor of that.
const rules = `(async () => {
	const stuck = [...document.body.querySelectorAll("*")].filter(el => getComputedStyle(el).position === "sticky")
	for (const el of stuck) el.style.position = "static"
	const r = await axe.run(document, {resultTypes: ["violations"], runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]}})
	for (const el of stuck) el.style.position = ""
	return r.violations.flatMap(v => v.nodes.slice(0, 5).map(n => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.replaceAll("\n", " ") + " " + n.html.slice(0, 160)))
})()`

// unseen are elements that only readers of the screen get, and what is in them.
const unseen = `
	const hidden = [...document.body.querySelectorAll("*")].filter(el => getComputedStyle(el).clipPath === "inset(50%)")
	const unseen = el => !el.checkVisibility({visibilityProperty: true}) || hidden.some(h => h.contains(el))
`

// wide says what is wider than the page.
const wide = `(() => {` + unseen + `
	const page = document.documentElement, list = []
	if (page.scrollWidth > page.clientWidth) list.push("the page is " + page.scrollWidth + " px wide on a screen of " + page.clientWidth)
	const scrolls = el => { for (; el; el = el.parentElement) if (/auto|scroll/.test(getComputedStyle(el).overflowX) || el.matches(".rows td") && getComputedStyle(el).textOverflow === "ellipsis") return true }
	for (const el of document.body.querySelectorAll("*")) {
		const box = el.getBoundingClientRect()
		if (box.width < 2 || box.height < 2 || unseen(el)) continue
		if ((box.right > page.clientWidth + 1 || box.left < -1) && !scrolls(el.parentElement))
			list.push(el.outerHTML.slice(0, 120) + " reaches from " + Math.round(box.left) + " to " + Math.round(box.right))
	}
	return list.slice(0, 10)
})()`

// cut says which texts do not fit into what they stand in. That lines of a log do not is what
// somebody has chosen who has them not wrapped, and goes through them by keys and otherwise. A list of
// many columns that somebody has chosen goes sideways in its box, by keys too. Cells of a list that end in
// dots are told whole where the pointer is, if they are not short anyway.
const cut = `(() => {` + unseen + `
	const list = []
	for (const el of document.body.querySelectorAll("*")) {
		if (el.matches("svg *, option, textarea, input") || unseen(el)) continue
		const style = getComputedStyle(el)
		if (el.matches('[data-wrap="off"] .log[tabindex="0"], .presets, .list[tabindex="0"]:has(> .many)') && style.overflowX === "auto") continue
		if (el.matches(".rows td") && style.textOverflow === "ellipsis" && el.clientWidth >= 56) continue
		if (el.clientWidth > 0 && el.scrollWidth > el.clientWidth + 1 && (style.overflowX !== "visible" || el.matches("button, .button, th, td, summary, .state")))
			list.push(el.outerHTML.slice(0, 160) + ": " + el.scrollWidth + " px in " + el.clientWidth)
	}
	return list.slice(0, 10)
})()`

// broken says which words stand on two lines. What is as long as no word is, as an address or the name of a
// class, has to be broken somewhere.
const broken = `(() => {` + unseen + `
	const list = [], range = document.createRange(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let text; text = texts.nextNode();) {
		if (!/[A-Za-z]{2}/.test(text.data) || text.parentElement.closest("svg, option, textarea, script, style, noscript") || unseen(text.parentElement)) continue
		range.selectNodeContents(text)
		if (range.getBoundingClientRect().height < 30) continue
		for (const token of text.data.matchAll(/\S+/g)) if (token[0].length <= 24) for (const word of token[0].matchAll(/[A-Za-z]{2,}/g)) {
			range.setStart(text, token.index + word.index)
			range.setEnd(text, token.index + word.index + word[0].length)
			const lines = [...range.getClientRects()].filter(r => r.width > 0)
			if (lines.some(r => Math.abs(r.top - lines[0].top) > r.height / 2)) list.push(word[0] + " of " + text.parentElement.outerHTML.slice(0, 160))
		}
	}
	return list.slice(0, 10)
})()`

// fits says what of a page does not fit the width of the screen, each by its kind.
const fits = `Object.entries({wide: ` + wide + `, cut: ` + cut + `, word: ` + broken + `}).flatMap(([kind, list]) => list.map(fault => kind + ": " + fault))`

// missing says which characters of the page no font has: they look like one that nobody has
// given a meaning.
const missing = `(() => {
	const seen = new Set()
	const add = (text, el) => { for (const c of text) if (c > "~") seen.add(c) }
	add(document.body.innerText)
	for (const el of document.body.querySelectorAll("*")) for (const part of ["::before", "::after"]) {
		const content = getComputedStyle(el, part).content
		if (content !== "none" && content !== "normal") add(content)
	}
	for (const el of document.querySelectorAll("[placeholder]")) add(el.placeholder)
	const canvas = document.createElement("canvas")
	canvas.width = canvas.height = 32
	const pen = canvas.getContext("2d", {willReadFrequently: true})
	pen.textBaseline = "top"
	pen.font = "24px " + getComputedStyle(document.body).fontFamily
	const picture = c => {
		pen.clearRect(0, 0, 32, 32)
		pen.fillText(c, 2, 2)
		return pen.getImageData(0, 0, 32, 32).data.join()
	}
	const none = picture("\u0378")
	return [...seen].filter(c => !/[\s\p{Cf}]/u.test(c) && picture(c) === none).map(c => "no font has " + c + " (U+" + c.codePointAt(0).toString(16) + ")")
})()`

// undrawn says which signs are not drawn, and which have neither a word beside them nor a name.
const undrawn = `(() => {
	const list = []
	for (const sign of document.querySelectorAll("svg.sign")) {
		if (!sign.checkVisibility({visibilityProperty: true})) continue
		const use = [...sign.querySelectorAll("use")].find(u => getComputedStyle(u).display !== "none"), box = use?.getBBox()
		if (!box || box.width + box.height === 0 || sign.getBoundingClientRect().width < 8) list.push("not drawn: " + sign.outerHTML)
		if (!sign.parentElement.textContent.trim() && !sign.closest("[aria-label], [title]")) list.push("no word beside " + sign.outerHTML)
	}
	return list.slice(0, 10)
})()`

// check says all that is wrong with the page that is shown, each by its kind.
func (b *tab) check() (faults []string) {
	b.Helper()
	add := func(kind string, list []string) {
		for _, fault := range list {
			faults = append(faults, kind+": "+fault)
		}
	}
	add("policy", eval[[]string](b, `window.__refused ?? []`))
	add("wide", eval[[]string](b, wide))
	add("cut", eval[[]string](b, cut))
	add("word", eval[[]string](b, broken))
	add("glyph", eval[[]string](b, missing))
	add("sign", eval[[]string](b, undrawn))
	eval[bool](b, axe+"; true")
	add("axe", eval[[]string](b, rules))
	return append(faults, b.takeFaults()...)
}

// TestVendored: what is not ours is what its licence and its hash say.
func TestVendored(t *testing.T) {
	var list []struct{ File, Package, Version, Licence, LicenceFile, SHA256 string }
	must(t, json.Unmarshal(must1(os.ReadFile("axe/vendor.json")), &list))
	known := map[string]bool{"vendor.json": true}
	for _, v := range list {
		sum := sha256.Sum256(must1(os.ReadFile(filepath.Join("axe", v.File))))
		if hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s is not what vendor.json says: %x", v.File, sum)
		}
		if v.Package == "" || v.Version == "" || v.Licence == "" {
			t.Errorf("%s: %+v lacks something", v.File, v)
		}
		must1(os.Stat(filepath.Join("axe", v.LicenceFile)))
		known[v.File], known[v.LicenceFile] = true, true
	}
	for _, f := range must1(os.ReadDir("axe")) {
		if !known[f.Name()] {
			t.Errorf("%s is not in vendor.json", f.Name())
		}
	}
	if !strings.HasPrefix(axe, "/*! axe v4.14.1\n") {
		t.Errorf("axe.min.js begins with %q", firstLine(axe))
	}
}
