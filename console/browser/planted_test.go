package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPlanted: each check finds what it is there for. A page that has nothing of the kind passes
// all of them.
func TestPlanted(t *testing.T) {
	browser(t)
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src * data:; connect-src *"
	pages := map[string]struct{ body, script, kind, policy string }{
		"none":           {body: `<p>all is well</p>`},
		"inline script":  {body: `<script>document.title = "x"</script>`, kind: "policy: script-src-elem inline"},
		"inline style":   {body: `<p style="color: red">x</p>`, kind: "policy: style-src-attr inline"},
		"console error":  {script: `console.error("something", 7)`, kind: `console: "something" 7`},
		"exception":      {script: `throw new Error("thrown")`, kind: "exception: Uncaught Error: thrown"},
		"rejection":      {script: `Promise.reject(new Error("thrown"))`, kind: "exception: Uncaught (in promise) Error: thrown"},
		"dialog":         {script: `alert("who is there?")`, kind: `dialog: alert "who is there?"`},
		"other origin":   {body: `<img src="http://127.0.0.1:9/x.png" alt="x">`, kind: "request: http://127.0.0.1:9/x.png"},
		"missing file":   {body: `<img src="/gone.png" alt="x">`, kind: ""},
		"too wide":       {body: `<p class="wide">x</p>`, kind: "wide: the page is 1400 px wide on a screen of 1280"},
		"out of sight":   {body: `<p class="left">x</p>`, kind: `wide: <p class="left">`},
		"text cut":       {body: `<p class="narrow">incomprehensibilities</p>`, kind: `cut: <p class="narrow">`},
		"broken word":    {body: `<p class="slim">incomprehensibly</p>`, kind: `word: incomprehensibly of <p class="slim">`},
		"broken address": {body: `<p class="slim"><span>https://10.4.17.203:9999/some/where</span></p>`},
		"missing glyph":  {body: "<p>\u0379</p>", kind: "glyph: no font has \u0379"},
		"no such sign":   {body: `<p><svg class="sign" width="16" height="16"><use href="#gone"/></svg> x</p>`, kind: "sign: not drawn: "},
		"sign alone":     {body: `<svg width="0" height="0"><symbol id="s" viewBox="0 0 16 16"><path d="M2 2h9v9z"/></symbol></svg><p><svg class="sign" width="16" height="16"><use href="#s"/></svg></p>`, kind: "sign: no word beside "},
		"no alternative": {body: `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">`, kind: "axe: image-alt: img"},
		"low contrast":   {body: `<p class="pale">hardly there</p>`, kind: "axe: color-contrast: p"},
	}
	const style = `body { color: #000; background: #fff; margin: 0 } .wide { width: 1400px } .left { position: absolute; left: -50px } .narrow { width: 20px; overflow: hidden } .slim { width: 80px; overflow-wrap: anywhere } .pale { color: #ddd }`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, part, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		p, known := pages[name]
		switch {
		case !known:
			w.WriteHeader(http.StatusNoContent)
		case part == "style.css":
			w.Header().Set("Content-Type", "text/css")
			_, _ = w.Write([]byte(style))
		case part == "script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(p.script))
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", policy)
			_, _ = w.Write([]byte(`<!doctype html><html lang="en"><head><title>x</title><link rel="stylesheet" href="/` + name + `/style.css"><script src="/` + name + `/script.js" defer></script></head><body><main><h1>x</h1>` + p.body + `</main></body></html>`))
		}
	}))
	t.Cleanup(server.Close)
	b := newTab(t, server.URL)
	b.do(chromedp.EmulateViewport(1280, 800))
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			b.inTest(t)
			b.open("/" + strings.ReplaceAll(name, " ", "%20") + "/")
			found := append(b.check(), eval[[]string](b, fits)...)
			switch {
			case p.kind == "" && len(found) > 0:
				t.Errorf("found without a reason: %q", found)
			case p.kind != "" && !strings.Contains(strings.Join(found, "\n"), p.kind):
				t.Errorf("not found: %s in %q", p.kind, found)
			}
		})
	}
}
