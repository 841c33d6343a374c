package console_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// linesOf is how many lines the list has, and how many of them stand for a broadcast.
func linesOf(b *browser) (lines, wholes int) {
	return len(regexp.MustCompile(`<tr id="(run|trigger)-\d+"`).FindAllString(b.body, -1)), strings.Count(b.body, `<tr id="trigger-`)
}

// TestABroadcastIsOneLine: of a broadcast the list of runs has one line, which says how many parts have ended
// how, shows the error of one that has failed and leads to the whole; filters go by the parts, few of which
// stand for themselves, and each part is a link away.
func TestABroadcastIsOneLine(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"billing": console.Viewer}})
		ctx := t.Context()
		alone := x.run(x.job("billing", "alone"))
		j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "all", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
		parts := x.parts(j, 15, "")
		var results []store.Result
		for i := range 14 {
			r := store.Result{RunID: parts[i].ID, State: store.StateSucceeded, HandleMsg: "done"}
			if i < 2 {
				r.State, r.HandleMsg = store.StateFailed, "disk <full>"
			}
			results = append(results, r)
		}
		must1(x.store.Finish(ctx, nil, results))
		root.get("runs").is(200).has("2 failed, 1 running, 12 succeeded", "15 parts", "disk <full>", "each part", "alone").lacks("parts in this list")
		if lines, wholes := linesOf(root); lines != 2 || wholes != 1 {
			t.Errorf("%d lines, %d of broadcasts", lines, wholes)
		}
		lead := regexp.MustCompile(`<a class="row" href="\./(runs/\d+)"`).FindStringSubmatch(root.body)
		if lead == nil {
			t.Fatal("the line leads nowhere")
		}
		root.get(lead[1]).is(200).has("Broadcast of 15 parts 2 failed, 1 running, 12 succeeded", "disk <full>")
		root.get("runs?parts=each").is(200).has("part 15 of 15", "Parts: each part")
		if lines, wholes := linesOf(root); lines != 16 || wholes != 0 {
			t.Errorf("of each: %d lines, %d of broadcasts", lines, wholes)
		}
		root.get("runs?state=bad").is(200).has("disk <full>", "part ")
		if lines, wholes := linesOf(root); lines != 2 || wholes != 0 {
			t.Errorf("of those that have failed: %d lines, %d of broadcasts", lines, wholes)
		}
		root.get("runs?state=succeeded&job="+itoa(j.ID)).is(200).has("12 succeeded", "12 of 15 parts in this list")
		if lines, wholes := linesOf(root); lines != 1 || wholes != 1 {
			t.Errorf("of those that have succeeded: %d lines, %d of broadcasts", lines, wholes)
		}
		root.get("runs?parts=some").is(404)
		viewer.get("runs").is(200).has("alone").lacks("15 parts", "disk")
		if viewer.get("runs?parts=each"); !strings.Contains(viewer.body, "run-"+itoa(alone.ID)) {
			t.Error("the run of the other app is missing")
		}
	})
}

// TestABroadcastIsOneLineOfItsJob: on the page of its job, and on that of the run that has led to it, a broadcast is
// one line as in the list of runs, with the error of a part that has failed. The page of the job is filled up with
// what was before it, as far as that can be read, and leads to the list with each part.
func TestABroadcastIsOneLineOfItsJob(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		for _, hides := range []bool{false, true} {
			f := &filling{}
			x := newSite(t, func(c *console.Config) {
				f.st = c.Store.(Store)
				c.Store = bent.WholeOf(f.st, f)
				if hides {
					c.Redact = func(_ string, _ console.Field, text string) string {
						return strings.ReplaceAll(text, "full", "●●●")
					}
				}
			})
			root := x.admin()
			ctx := t.Context()
			j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "all", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
			first := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "first", Handler: "work", Children: []int64{j.ID}}))
			var before []string
			for range 25 {
				before = append(before, `<tr id="run-`+itoa(x.run(j).ID)+`"`)
			}
			leads := x.parts(first, 1, "")[0]
			must1(x.store.Finish(ctx, nil, []store.Result{{RunID: leads.ID, State: store.StateSucceeded}}))
			must1(x.store.PayOwed(ctx, store.OwedQuery{Shards: x.taken, Limit: 10}))
			parts := x.partsOf(must1(x.store.Children(ctx, leads.ID, 0, 10))[0], j, 30, "")
			must1(x.store.Finish(ctx, nil, []store.Result{{RunID: parts[7].ID, State: store.StateFailed, HandleMsg: "disk full"}}))
			page := "jobs/" + itoa(j.ID)
			set := func(fails bool) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.fails = fails
			}
			root.get(page).is(200).has("1 failed, 29 running", "30 parts", "each part")
			if lines, wholes := linesOf(root); lines != 20 || wholes != 1 {
				t.Errorf("hides %t: %d lines, %d of broadcasts, want 20 and 1", hides, lines, wholes)
			}
			if hides {
				root.lacks("disk full")
			} else {
				root.has("disk full")
			}
			for i, row := range before {
				if shown := strings.Contains(root.body, row); shown != (i >= 6) {
					t.Errorf("hides %t: run %d of those before it is shown: %t", hides, i, shown)
				}
			}
			each := root.link("each part")
			set(true)
			root.get(page).is(200).has("20 of 30 parts in this list")
			if lines, wholes := linesOf(root); lines != 1 || wholes != 1 {
				t.Errorf("hides %t, without further runs: %d lines, %d of broadcasts, want 1 of one", hides, lines, wholes)
			}
			set(false)
			root.get(each).is(200).has("part 30 of 30", "Parts: each part")
			if lines, wholes := linesOf(root); lines != 50 || wholes != 0 {
				t.Errorf("hides %t, each part: %d lines, %d of broadcasts, want 50 and none", hides, lines, wholes)
			}
			root.get("runs/"+itoa(leads.ID)).is(200).has("1 failed, 29 running", "30 parts", "each part")
			if lines, wholes := linesOf(root); lines != 1 || wholes != 1 {
				t.Errorf("hides %t, what led to it: %d lines, %d of broadcasts, want 1 of one", hides, lines, wholes)
			}
		}
	})
}

// TestManyBroadcasts: a page is filled up with other runs where parts stand in one line, no run is on two pages
// and none is left out, and what a page reads is bounded.
func TestManyBroadcasts(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x, f := faulty(t)
		root := x.admin()
		ctx := t.Context()
		other := x.job("orders", "other")
		for range 30 {
			x.run(other)
		}
		for i := range 3 {
			x.parts(must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: fmt.Sprint("all ", i), Handler: "work", Route: xxljob.RouteShardingBroadcast})), 60, "")
			for range 20 {
				x.run(other)
			}
		}
		seen, wholes, pages := map[string]bool{}, map[string]int{}, 0
		for at := "runs"; at != ""; pages++ {
			root.get(at)
			asked := 0
			f.Observe(func(_ context.Context, method string) {
				if method == "SearchRuns" {
					asked++
				}
			})
			root.get(at).is(200)
			f.Observe(nil)
			if asked > 4+5 { // and those of the counts above the list
				t.Errorf("page %d asks for runs %d times", pages, asked)
			}
			lines, _ := linesOf(root)
			if lines > 50 || pages == 0 && lines != 50 {
				t.Errorf("page %d has %d lines", pages, lines)
			}
			for _, m := range regexp.MustCompile(`<tr id="(run-\d+)"`).FindAllStringSubmatch(root.body, -1) {
				if seen[m[1]] {
					t.Errorf("%s is there twice", m[1])
				}
				seen[m[1]] = true
			}
			for _, m := range regexp.MustCompile(`<tr id="(trigger-\d+)"`).FindAllStringSubmatch(root.body, -1) {
				wholes[m[1]]++
			}
			at = ""
			if m := regexp.MustCompile(`<a href="\./(runs\?[^"]+)" rel="next"`).FindStringSubmatch(root.body); m != nil {
				at = strings.ReplaceAll(m[1], "&amp;", "&")
			}
			if pages > 5 {
				t.Fatal("the list does not end")
			}
		}
		if len(seen) != 90 || len(wholes) != 3 || pages != 2 {
			t.Errorf("%d runs and %d broadcasts on %d pages, want 90 and 3 on 2", len(seen), len(wholes), pages)
		}
		for trigger, n := range wholes {
			if n != 1 {
				t.Errorf("%s is on %d pages", trigger, n)
			}
		}
	})
}

// snoozed ends runs so, and returns those that follow, which are planned.
func (x *site) snoozed(list []xxljob.Run) (next []xxljob.Run) {
	x.Helper()
	var results []store.Result
	for _, r := range list {
		results = append(results, store.Result{RunID: r.ID, State: store.StateSnoozed})
	}
	must1(x.store.Finish(x.Context(), nil, results))
	for _, r := range must1(x.store.Tree(x.Context(), list[0].TriggerID)) {
		if r.State == store.StatePlanned {
			next = append(next, r)
		}
	}
	if len(next) != len(list) {
		x.Fatalf("%d runs follow %d", len(next), len(list))
	}
	return next
}

// TestTheNewestRunOfAPartCounts: of a broadcast whose parts were snoozed and have failed then, the line says that
// they have failed, with the error, and leads to one that has.
func TestTheNewestRunOfAPartCounts(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ctx := t.Context()
		j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: "all", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
		next := x.snoozed(x.parts(j, 5, ""))
		root.get("runs").is(200).has("5 planned", "5 parts").lacks("5 snoozed")
		var results []store.Result
		for _, r := range next {
			var shard store.Shard
			for _, s := range x.taken {
				if s.ID == j.Shard {
					shard = s
				}
			}
			started := must1(x.store.Start(ctx, nil, []store.Start{{RunID: r.ID, JobID: j.ID, Shard: shard.ID, Epoch: shard.Epoch, JobVersion: j.Version,
				State: store.StateStarted, Owner: "node-1", Token: 2, Address: "http://10.0.0.1:1000/", Handler: "work"}}))[0]
			if started.Status != store.StartOK {
				t.Fatalf("a part that was snoozed: status %d", started.Status)
			}
			results = append(results, store.Result{RunID: r.ID, State: store.StateFailed, HandleMsg: "disk full"})
		}
		must1(x.store.Finish(ctx, nil, results))
		root.get("runs").is(200).has("5 failed", "disk full").lacks("5 snoozed")
		if lines, wholes := linesOf(root); lines != 1 || wholes != 1 {
			t.Errorf("%d lines, %d of broadcasts", lines, wholes)
		}
		lead := regexp.MustCompile(`<a class="row" href="\./(runs/\d+)"`).FindStringSubmatch(root.body)
		if lead == nil {
			t.Fatal("the line leads nowhere")
		}
		root.get(lead[1]).is(200).has("Broadcast of 5 parts 5 failed", "disk full")
	})
}

// TestFewPartsAreNotFolded: it is parts that count, not their runs: where fewer than four have been snoozed, each
// run is a line, and a page has no more of these than any other.
func TestFewPartsAreNotFolded(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		for i := range 15 {
			x.snoozed(x.parts(must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprint("two ", i), Handler: "work", Route: xxljob.RouteShardingBroadcast})), 2, ""))
		}
		for page, want := range []int{50, 10} {
			if page == 0 {
				root.get("runs").is(200)
			} else {
				root.get(root.link("Next page")).is(200)
			}
			if lines, wholes := linesOf(root); lines != want || wholes != 0 {
				t.Errorf("page %d: %d lines, %d of broadcasts, want %d and none", page, lines, wholes, want)
			}
		}
	})
}

// filling is a store that is asked to fill pages up with further runs.
type filling struct {
	st    Store
	mu    sync.Mutex
	fails bool
	asked int // for further runs
	looks int // at so many runs the reads of a page may look, those before with what they have
	most  int // of these, of any page
}

func (f *filling) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch q.Limit {
	case 50:
		f.looks = 0
	case 200:
		if f.asked++; f.fails {
			return xxljob.RunsFound{}, errors.New("the store is away")
		}
	default: // counts
		return f.st.SearchRuns(ctx, q)
	}
	may := q.Examine
	if may == 0 {
		may = 20_000
	}
	f.most = max(f.most, f.looks+may)
	found, err := f.st.SearchRuns(ctx, q)
	f.looks += found.Examined
	return found, err
}

// TestWhatFillsAPageUp costs no page: where it fails the page has what was found before, and goes on from there.
// Together the reads of a page look at no more runs than one does. No page of a search in texts is filled up, and
// none where the host hides parts of texts, so that the whole of each is read.
func TestWhatFillsAPageUp(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		f := &filling{}
		x := newSite(t, func(c *console.Config) { f.st = c.Store.(Store); c.Store = bent.WholeOf(f.st, f) })
		root := x.admin()
		other := x.job("orders", "other")
		for range 30 {
			x.run(other)
		}
		x.parts(must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "all", Handler: "work", Route: xxljob.RouteShardingBroadcast})), 60, "canary")
		set := func(fails bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.fails, f.asked, f.most = fails, 0, 0
		}
		asked := func() (times, most int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.asked, f.most
		}
		set(false)
		root.get("runs?app=orders").is(200)
		if lines, wholes := linesOf(root); lines != 31 || wholes != 1 {
			t.Errorf("%d lines, %d of broadcasts, want 31 and 1", lines, wholes)
		}
		if times, most := asked(); times == 0 || most > 20_000 {
			t.Errorf("further runs were asked for %d times, and it may be looked at %d", times, most)
		}
		set(true)
		root.get("runs").is(200).has("50 of 60 parts in this list")
		if lines, wholes := linesOf(root); lines != 1 || wholes != 1 {
			t.Errorf("without further runs: %d lines, %d of broadcasts, want 1 of one", lines, wholes)
		}
		next := root.link("Next page")
		set(false)
		root.get(next).is(200).has("10 of 60 parts in this list")
		if lines, wholes := linesOf(root); lines != 31 || wholes != 1 {
			t.Errorf("behind it: %d lines, %d of broadcasts, want 31 and 1", lines, wholes)
		}
		set(false)
		root.get("runs?text=canary").is(200).has("50 of 60 parts in this list")
		hiding := newSiteOn(t, bent.WholeOf(f.st, f), func(c *console.Config) {
			c.Redact = func(_ string, _ console.Field, text string) string { return text }
		})
		hiding.session("root", "another session").get("runs").is(200).has("50 of 60 parts in this list")
		if times, _ := asked(); times != 0 {
			t.Errorf("further runs were asked for %d times by a search in texts, and where texts are hidden", times)
		}
	})
}

// TestABroadcastIsOneOfWhatRuns: on the overview, and on the page of its app, a broadcast is one line of what runs
// now, and does not keep others out.
func TestABroadcastIsOneOfWhatRuns(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "all of them", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
		x.parts(j, 12, "")
		few := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "few of them", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
		x.parts(few, 3, "")
		x.parts(x.job("orders", "alone"), 1, "")
		for _, page := range []string{"overview", "executors?app=orders"} {
			root.get(page).is(200).has("12 parts", "alone").lacks("3 parts")
			_, now, _ := strings.Cut(root.body, "Running now")
			now, _, _ = strings.Cut(now, "</ul>")
			if all, some := strings.Count(now, "all of them"), strings.Count(now, "few of them"); all != 1 || some != 3 {
				t.Errorf("%s: what runs now has %d lines of a broadcast of twelve parts, want 1, and %d of one of three", page, all, some)
			}
			if kills := strings.Count(now, "/kill"); kills != 4 {
				t.Errorf("%s: %d of what runs now may be killed, want 4", page, kills)
			}
		}
	})
}
