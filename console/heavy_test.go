package console_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The bounds of a page of texts that somebody has made as costly as they can be: what is sent, and
// what is allocated for it in all.
const (
	mostSent      = 6 << 20
	mostAllocated = 64 << 20
)

// heavy are texts of up to n bytes, by what they cost a page that does not look out.
func heavy(n int) map[string]string {
	deep := min(9_000, n/3)
	return map[string]string{
		"nested JSON":       strings.Repeat("[", deep) + strings.Repeat("0,", (n-2*deep-1)/2) + "0" + strings.Repeat("]", deep),
		"an object":         "{" + strings.TrimSuffix(strings.Repeat(`"":[{}],`, (n-2)/8), ",") + "}",
		"quotes":            strings.Repeat(`"`, n),
		"what is not seen":  strings.Repeat("\u202e", n/3),
		"lines":             strings.Repeat("a\n", n/2),
		"colors":            strings.Repeat("\x1b[31mr\x1b[1mb", n/11),
		"escapes of colors": strings.Repeat("\x1b[", n/2),
	}
}

// heavyLog is a scheduler whose logs are of one text a line.
type heavyLog struct {
	xxljob.Scheduler
	line string
}

func (h *heavyLog) Log(_ context.Context, _ int64, from int) (wire.LogResult, error) {
	return wire.LogResult{FromLineNum: from, ToLineNum: from + 499, LogContent: strings.Repeat(h.line+"\n", 500), IsEnd: true}, nil
}

func (h *heavyLog) LogTail(ctx context.Context, run int64, _ int) (wire.LogResult, error) {
	return h.Log(ctx, run, 1)
}

// TestPagesOfHeavyTexts: no text makes a page cost much more than it has itself: each page, with
// such texts in whatever field takes them.
// It is beside no other test, since what these allocate would count.
func TestPagesOfHeavyTexts(t *testing.T) {
	t.Run("memory", testPagesOfHeavyTexts)
	t.Run(inPostgres, testPagesOfHeavyTexts)
}

func testPagesOfHeavyTexts(t *testing.T) {
	for what, text := range heavy(64 << 10) {
		if strings.HasSuffix(t.Name(), inPostgres) && what != "nested JSON" && what != "lines" {
			continue // what a page makes of a text does not depend on where it was
		}
		log := &heavyLog{line: strings.ReplaceAll(text[:8<<10], "\n", "\r")}
		x := newSite(t, func(c *console.Config) { log.Scheduler = c.Scheduler; c.Scheduler = log })
		root := x.admin()
		root.follows = false
		j, r := x.heavily(text)
		for _, page := range pages(j, r) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			root.get(page)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; len(root.body) > mostSent || took > mostAllocated {
				t.Errorf("%s: %s has %d kB and takes %d MB", what, page, len(root.body)>>10, took>>20)
			}
			if root.res.StatusCode >= 500 {
				t.Errorf("%s: %s: status %d: %s", what, page, root.res.StatusCode, root.text())
			}
		}
	}
}

// heavily is a job with a run, and the record of fifty edits, in which each text is as given.
func (x *site) heavily(text string) (j xxljob.Job, r xxljob.Run) {
	x.Helper()
	ctx := xxljob.WithActor(x.Context(), "ann")
	other := strings.ReplaceAll(strings.ReplaceAll(text, "a", "c"), "0", "1")
	j = x.job("orders", "nightly")
	for i := range 50 {
		now := must1(x.store.Job(ctx, j.ID))
		now.Param = []string{text, other}[i%2]
		must1(x.s.UpdateJob(ctx, now.Definition()))
		must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "edit", Object: store.ObjectJob, ObjectID: itoa(j.ID), JobID: j.ID, App: "orders", Before: paramOf(text), After: paramOf(other)}))
	}
	for range 10 {
		r = must1(x.store.AddRun(ctx, j.ID, xxljob.Trigger{Param: &text}))
	}
	return j, r
}

// paramOf is a JSON object with as much of a text as an entry of the record may have.
func paramOf(text string) string {
	for n := 64 << 10; ; n = n * 7 / 8 {
		object, err := json.Marshal(map[string]string{"Param": strings.ToValidUTF8(text[:min(n, len(text))], "")})
		if err == nil && len(object) <= 64<<10 {
			return string(object)
		}
	}
}
