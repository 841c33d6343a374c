package console_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
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
		root.get("runs").is(200).has("2 failed, 1 started, 12 succeeded", "15 parts", "disk <full>", "each part", "alone").lacks("parts in this list")
		if lines, wholes := linesOf(root); lines != 2 || wholes != 1 {
			t.Errorf("%d lines, %d of broadcasts", lines, wholes)
		}
		lead := regexp.MustCompile(`<a class="row" href="\./(runs/\d+)"`).FindStringSubmatch(root.body)
		if lead == nil {
			t.Fatal("the line leads nowhere")
		}
		root.get(lead[1]).is(200).has("Broadcast of 15 parts 2 failed, 1 started, 12 succeeded", "disk <full>")
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
