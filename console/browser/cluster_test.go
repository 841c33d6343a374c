package browser

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// TestTimetableAndExecutors: so many lines of each are seen on a screen, at each width, in both languages
// and themes, without scripts too; keys lead there.
func TestTimetableAndExecutors(t *testing.T) {
	browser(t)
	t.Parallel()
	x := standing(t)
	b := newTab(t, x.origin)
	session, dir := x.session("root"), pictures(t)
	const rows = `[...document.querySelectorAll("#live tbody tr")]`
	for _, screen := range []struct{ width, height, least int64 }{{1440, 900, 8}, {1024, 768, 6}, {390, 844, 1}} {
		for i, c := range []combination{{"en", "light", screen.width}, {"zh-CN", "dark", screen.width}} {
			b.looks(c, map[string]string{"xxljob_session": session, "xxljob_look": "language=" + c.language + "&zone=Asia%2FShanghai"})
			for name, path := range map[string]string{"timetable": "timetable?range=24h", "executors": "executors", "shards": "executors?tab=shards"} {
				b.scripts(i == 0)
				b.do(chromedp.EmulateViewport(screen.width, screen.height))
				b.open(mount + path)
				b.until("rows", rows+".length > 4")
				seen := eval[int64](b, `(() => {
					const rail = document.querySelector(".rail").getBoundingClientRect(), end = rail.top > 100 ? rail.top : innerHeight
					return `+rows+`.filter(r => r.getBoundingClientRect().bottom <= end).length
				})()`)
				if least := min(screen.least, eval[int64](b, rows+".length")); seen < least {
					b.Errorf("%s at %d x %d: %d rows, want %d", path, screen.width, screen.height, seen, least)
				}
				for _, fault := range eval[[]string](b, fits) {
					b.Errorf("%s at %d px: %s", path, screen.width, fault)
				}
				for _, cell := range eval[[]string](b, `innerWidth < 840 ? [] : [...document.querySelectorAll("#live :is(td.c-name, td.c-app, td.c-node, td.c-where, td.c-handlers)")].filter(td => td.checkVisibility() && td.getBoundingClientRect().width < 160).map(td => td.className + " of " + td.getBoundingClientRect().width)`) {
					b.Errorf("%s at %d px: a narrow column: %s", path, screen.width, cell)
				}
				b.picture(c, filepath.Join(dir, fmt.Sprintf("cluster-%s-%s-%d.png", name, c.language, screen.width)))
			}
		}
	}
	b.scripts(true)
	b.looks(combination{"en", "light", 1440}, map[string]string{"xxljob_session": session, "xxljob_look": "language=en"})
	b.open(mount + "jobs")
	b.keys("g", "t")
	b.says("h1", "Timetable")
	b.keys("g", "e")
	b.says("h1", "Executors")
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestAMissingRunIsSeen: a time without a run is a hole among the signs of a job, which is told in words too.
func TestAMissingRunIsSeen(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	must(t, x.s.Stop(context.Background()))
	x.user("root")
	begin := time.Now().UTC().Truncate(time.Hour).Add(-20 * time.Hour)
	before := func() time.Time { return begin.Add(-time.Minute) }
	x.store.GoBy(before)
	n := x.node("ledger-7f9c6-x2x4q")
	for k, name := range []string{"Nightly ledger export", "汇率同步"} {
		x.store.GoBy(before)
		j := x.job(xxljob.Job{Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 * * * ?").In("UTC")})
		for i := range 20 {
			at := begin.Add(time.Duration(i) * time.Hour)
			x.store.GoBy(func() time.Time { return at })
			states := map[int]store.State{3: store.StateFailed, 7: store.StateSkipped, 12: store.StateTimedOut, 13: store.StateKilled}
			state, other := states[i-k]
			switch {
			case i == 9+k: // claimed, and no run of it: as a bug, or a hand in the database, would leave it
				now := must1(x.store.Job(t.Context(), j.ID))
				must1(x.store.Claim(t.Context(), nil, []store.Plan{{JobID: j.ID, Shard: now.Shard, Epoch: n.epochs[now.Shard], Version: now.Version, Due: now.Next, Next: now.Next.Add(time.Hour)}}))
				continue
			case state == store.StateSkipped:
				n.plan(j.ID, at, state, "")
				continue
			case !other:
				state = store.StateSucceeded
			}
			r := n.plan(j.ID, at, store.StatePlanned, "")[0]
			if i == 15 {
				x.store.GoBy(func() time.Time { return at.Add(time.Minute) })
			}
			r = n.start(r, "http://10.4.17.203:9999")
			must1(x.store.Finish(t.Context(), nil, []store.Result{{RunID: r.ID, Owner: r.Owner, Token: r.Token, State: state}}))
		}
	}
	x.store.GoBy(nil)
	b := newTab(t, x.origin)
	session, dir := x.session("root"), pictures(t)
	for _, c := range []combination{{"en", "light", 1440}, {"zh-CN", "dark", 1024}, {"en", "dark", 390}} {
		b.looks(c, map[string]string{"xxljob_session": session, "xxljob_look": "language=" + c.language + "&zone=UTC"})
		b.open(mount + "timetable?range=24h&text=Nightly")
		holes := eval[int64](b, `document.querySelectorAll(".slots .state-none").length`)
		if holes != 1 {
			b.Errorf("%d holes", holes)
		}
		if c.language == "en" {
			b.says("#live", "1 no run")
			b.says("#live", "Missing at")
		}
		for _, fault := range b.check() {
			b.Errorf("at %d px: %s", c.width, fault)
		}
		b.open(mount + "timetable?range=24h&order=name")
		b.picture(c, filepath.Join(dir, "holes-"+c.String()+".png"))
	}
}
