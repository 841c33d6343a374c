package browser

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/xxljob/xxljob"
)

// manyLines is how many lines flood writes at once.
const manyLines = 100_000

// flood is a handler that writes very many lines, and then goes on with a few at a time.
func flood(ctx context.Context, t *xxljob.Task) error {
	for n := 1; ; n++ {
		t.Log().Info("line", "n", n)
		if n < manyLines || n%20 != 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// flooded starts a run with very many lines and returns the path of its log.
func (x *site) flooded() string {
	x.Helper()
	id := x.trigger(x.job(xxljob.Job{Name: "Flood", Handler: "flood", Schedule: xxljob.Manual()}))
	x.wait(id, "running", func(r xxljob.Run) bool { return !r.Started.IsZero() })
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		res, err := x.s.LogTail(context.Background(), id, 1)
		if err == nil && res.ToLineNum >= manyLines {
			return mount + "runs/" + strconv.FormatInt(id, 10) + "/log"
		}
		if time.Now().After(end) {
			x.Fatalf("the log has %d lines, %v", res.ToLineNum, err)
		}
	}
}

// Of the lines on the page: how many, the first and the last, whether the view is at their end, and
// where the first one is that is seen.
const (
	logCount = `document.querySelectorAll("#lines .line").length`
	logFirst = `Number(document.querySelector("#lines .line").id.slice(1))`
	logLast  = `Number(document.querySelector("#lines").lastElementChild.id.slice(1))`
	logAtEnd = `(l => l.scrollTop + l.clientHeight >= l.scrollHeight - 4)(document.querySelector("#lines"))`
	logSeen  = `(() => { const top = document.querySelector("#lines").getBoundingClientRect().top; for (const l of document.querySelectorAll("#lines .line")) { const at = l.getBoundingClientRect().top - top; if (at >= 0) return l.id + " at " + Math.round(at) } })()`
	logMost  = `(() => { const l = document.querySelector("#lines"); window.__most = l.childElementCount; new MutationObserver(() => window.__most = Math.max(window.__most, l.childElementCount)).observe(l, {childList: true}) })()`
)

// gather has earlier lines fetched again and again, and returns the most lines that the page has
// had at any time. What one looks at stays where it is.
func (b *tab) gather(times int) int {
	b.Helper()
	b.do(discard(chromedp.Evaluate[any](logMost)))
	for range times {
		b.do(discard(chromedp.Evaluate[any](`document.querySelector("#lines").scrollTop = 37`)))
		first, seen := eval[int](b, logFirst), eval[string](b, logSeen)
		b.do(discard(chromedp.Evaluate[any](`document.querySelector("[data-log-earlier]").click()`)))
		b.until("earlier lines", logFirst+" < "+strconv.Itoa(first))
		if now := eval[string](b, logSeen); now != seen {
			b.Errorf("one sees %s, and saw %s before there were earlier lines", now, seen)
		}
	}
	// At once, for the log grows.
	if now := eval[[]int](b, "["+logFirst+", "+logLast+", "+logCount+"]"); now[1]-now[0]+1 != now[2] {
		b.Errorf("lines %d to %d are %d", now[0], now[1], now[2])
	}
	return eval[int](b, "window.__most")
}

// TestLongLog: a log of 100,000 lines is opened at its end, followed, read upwards and searched, and
// the page never has more than 5,000 lines of it; those that were taken out come again.
func TestLongLog(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	path := x.flooded()
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(path)
	if n, last := eval[int](b, logCount), eval[int](b, logLast); n < 400 || n > 2000 || last < manyLines || !eval[bool](b, logAtEnd) {
		t.Errorf("%d lines up to %d, at the end: %v", n, last, eval[bool](b, logAtEnd))
	}
	last := eval[int](b, logLast)
	b.until("new lines", logLast+" > "+strconv.Itoa(last+30))
	b.until("the end", logAtEnd)

	if most := b.gather(14); most > 5000 {
		t.Errorf("the page had %d lines", most)
	}
	if eval[int](b, logCount) != 5000 || eval[int](b, logLast) >= manyLines {
		t.Errorf("%d lines up to %d", eval[int](b, logCount), eval[int](b, logLast))
	}
	top := eval[string](b, logSeen)
	time.Sleep(2500 * time.Millisecond) // in which it would be followed
	if now := eval[string](b, logSeen); now != top {
		t.Errorf("one sees %s and saw %s, though nothing was done", now, top)
	}
	b.says("[data-log-lines]", "Lines "+strconv.Itoa(eval[int](b, logFirst)))

	// Who goes down again gets what was taken out, up to what is written now.
	for range 60 {
		b.do(discard(chromedp.Evaluate[any](`document.querySelector("#lines").scrollTop = 1e9`)))
		if eval[bool](b, logLast+" > "+strconv.Itoa(manyLines)+" && document.querySelector('[data-log-end]').hidden") {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	b.until("the end of the log", `document.querySelector("[data-log-end]").hidden`)
	b.do(discard(chromedp.Evaluate[any](`document.querySelector("#lines").scrollTop = 1e9`)))
	last = eval[int](b, logLast)
	b.until("what is written now", logLast+" > "+strconv.Itoa(max(last, manyLines)+30)+" && "+logAtEnd)
	if most := eval[int](b, "window.__most"); most > 5000 {
		t.Errorf("the page had %d lines", most)
	}

	// In what is here, as one types; and in all of it.
	middle := (eval[int](b, logFirst) + eval[int](b, logLast)) / 2 // the first ones are taken out as others are written
	b.fill(mouse{}, "#find", "N="+strconv.Itoa(middle))
	b.until("one line", `document.querySelectorAll("#lines .hit").length >= 1`)
	b.says("[data-log-here]", "Matching lines on this page: ")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until("the line", `document.querySelector("#lines .hit.marked")?.id === "L`+strconv.Itoa(middle)+`"`)
	b.fill(mouse{}, "#find", "n=4711 ")
	b.until("no line", `document.querySelectorAll("#lines .hit").length === 0`)
	b.fill(mouse{}, "#find", "n=4711")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the line in all of the log", `document.querySelector("#L4711")`)
	if n := eval[int](b, logCount); n > 200 || n < 11 { // 4711, and 47110 to 47119
		t.Errorf("%d lines are found", n)
	}
	b.open(path + "#L50000")
	b.until("a line in the middle", `document.querySelector("#L50000") && document.querySelectorAll("#lines .line").length <= 5000`)
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestALogThatGrows: that a page keeps more lines than it should is seen.
func TestALogThatGrows(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	path := x.flooded()
	greedy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "-runs.js") {
			x.handler.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding") // it is packed otherwise
		x.handler.ServeHTTP(rec, r)
		script := bytes.Replace(rec.Body.Bytes(), []byte("most = 5000"), []byte("most = 9e9"), 1)
		if bytes.Equal(script, rec.Body.Bytes()) {
			t.Error("the script has no bound that could be taken out")
		}
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(script)
	}))
	t.Cleanup(greedy.Close)
	b := newTab(t, greedy.URL)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(path)
	if most := b.gather(13); most <= 5000 {
		t.Errorf("%d lines are the most that was seen", most)
	}
}
