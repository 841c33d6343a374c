package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long anything may take in a browser on a busy machine.
const patience = 30 * time.Second

// programs are what a browser is called, the one without windows first.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// programOf finds a browser.
func programOf() string {
	if name := os.Getenv("XXLJOB_BROWSER"); name != "" {
		return name
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// shared is the browser of the process, started by the first test that needs one.
var shared struct {
	once  sync.Once
	ctx   context.Context
	close func()
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.close != nil {
		shared.close()
	}
	os.Exit(code)
}

// browser is the context of the browser, or the end of the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	program := programOf()
	if program == "" {
		if os.Getenv("XXLJOB_REQUIRE_BROWSER") == "1" || os.Getenv("CI") == "true" {
			t.Fatal("there is no browser: run console/browser/install.sh, or name one in XXLJOB_BROWSER")
		}
		t.Skip("SKIPPED: there is no browser: run console/browser/install.sh, or name one in XXLJOB_BROWSER")
	}
	shared.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program),
			// Nothing but this machine is reached, whatever a page wants.
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
			chromedp.Flag("lang", "en"))
		if os.Getuid() == 0 {
			options = append(options, chromedp.NoSandbox)
		}
		ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(ctx)
		shared.ctx = ctx
		shared.close = func() { _ = chromedp.Cancel(ctx); cancel(); end() }
		shared.err = chromedp.Do(ctx)
	})
	if shared.err != nil {
		t.Fatal("the browser does not start: ", shared.err)
	}
	return shared.ctx
}

// tab is a tab of a browser that has no cookies but its own, and what has gone wrong in it.
type tab struct {
	away bool // the store does not answer, and pages say so
	*testing.T
	ctx    context.Context
	origin string // of all that it may ask for

	mu     sync.Mutex
	faults []string
}

// newTab opens a tab for the pages of an origin.
func newTab(t *testing.T, origin string) *tab {
	t.Helper()
	b := &tab{T: t, origin: origin}
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b.ctx = ctx
	must(t, chromedp.Listen(ctx, b.hear))
	b.do(
		call(network.Enable, network.EnableParams{}),
		call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: violations}))
	return b
}

// violations keeps what the policy of a page has refused.
const violations = `addEventListener("securitypolicyviolation", e => (window.__refused ??= []).push(e.effectiveDirective + " " + e.blockedURI))`

// hear takes an event of the tab. It must not wait for the tab.
func (b *tab) hear(ev any) {
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "assert" {
			var words []string
			for _, arg := range e.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			b.fault("console: %s", strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		// That a page is not there, as a page that says so, is no fault of it.
		if e.Entry.Level == "error" && !(e.Entry.Source == "network" && strings.HasPrefix(e.Entry.URL, b.origin) && strings.Contains(e.Entry.Text, "responded with a status of 4")) && !(b.away && strings.Contains(e.Entry.Text, "responded with a status of 503")) {
			b.fault("console: %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		b.fault("exception: %s", what)
	case *page.EventJavascriptDialogOpening:
		b.fault("dialog: %s %q", e.Type, e.Message)
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false})
		}()
	case *network.EventRequestWillBeSent:
		// Controls of the browser's own have pictures that are data; a page's are for its policy.
		if url := e.Request.URL; !strings.HasPrefix(url, b.origin+"/") && url != "about:blank" && !strings.HasPrefix(url, "data:") {
			b.fault("request: %s", url)
		}
	}
}

func (b *tab) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// takeFaults returns what has gone wrong since it was last asked.
func (b *tab) takeFaults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.faults
	b.faults = nil
	return list
}

// do does steps, one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v, on the page %s", err, b.where())
	}
}

// where is the address of the page, and the beginning of what it says.
func (b *tab) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + ": " + document.querySelector("main")?.innerText.slice(0, 2000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// call is a command of the protocol whose answer nobody needs.
func call[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

// eval is the value of an expression on the page; a promise is waited for.
func eval[V any](b *tab, expression string) V {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", firstLine(expression), err)
	}
	return v
}

// open goes to a page of the origin.
func (b *tab) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.origin + path))
}

// until waits until an expression is true of the page, whichever that is by then.
func (b *tab) until(what, expression string) {
	b.Helper()
	end := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s did not come (%v), on the page %s", what, err, b.where())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// looks sets how pages are to be shown.
func (b *tab) looks(c combination, cookies map[string]string) {
	b.Helper()
	var list []*network.CookieParam
	for name, value := range cookies {
		list = append(list, &network.CookieParam{Name: name, Value: value, URL: b.origin + mount})
	}
	steps := []chromedp.Action[chromedp.Void]{
		// Tabs are used beside each other: each is to take itself for the one that has the focus.
		call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: c.theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}),
		chromedp.EmulateViewport(c.width, c.height())}
	if len(list) > 0 {
		steps = append(steps, call(network.SetCookies, network.SetCookiesParams{Cookies: list}))
	}
	b.do(steps...)
}

// combination is how a page is shown.
type combination struct {
	language, theme string
	width           int64
}

func (c combination) String() string { return fmt.Sprintf("%s-%s-%d", c.language, c.theme, c.width) }

// height is that of a screen of this width.
func (c combination) height() int64 {
	if c.width < 640 {
		return 740
	}
	return 860
}

// combinations are all there are.
func combinations() (list []combination) {
	for _, language := range []string{"en", "zh-CN", "zh-TW"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 360} {
				list = append(list, combination{language, theme, width})
			}
		}
	}
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must1[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 120 {
		line = line[:120] + "…"
	}
	return line
}

// quoted is a text as a literal of JavaScript.
func quoted(text string) string { return string(must1(json.Marshal(text))) }
