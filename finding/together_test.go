package finding_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// darken has an app with so many enabled jobs lose its executors so many minutes ago; it never had any if
// that is negative. As many runs of it wait.
func darken(w *finding.World, app string, jobs, ago, waiting int) {
	w.Counts = append(w.Counts, store.JobCount{App: app, Enabled: jobs})
	if ago >= 0 {
		w.Served = append(w.Served, store.Served{App: app, By: store.ServedRegistered, Gone: now.Add(-time.Duration(ago) * time.Minute)})
	}
	for range waiting {
		n := int64(len(w.Waiting))
		w.Waiting = append(w.Waiting, store.Run{ID: 500 + n, JobID: 50 + n, App: app, Scheduled: now.Add(-time.Duration(n) * time.Minute)})
	}
}

// TestTogether: apps without an executor are one line, where the first of them stood, with all that is known
// of them; whatever else is found stays by itself.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(w *finding.World)
		says []string
		apps []string // of the one that is of several
	}{
		{"all is well", func(*finding.World) {}, nil, nil},
		{"one app", func(w *finding.World) { darken(w, "a", 4, 10, 0) }, []string{"app a: no live executor (enabled jobs: 4), since 2026-03-02T08:50:00Z"}, nil},
		{"two apps", func(w *finding.World) { darken(w, "a", 4, 10, 0); darken(w, "b", 3, 20, 0) },
			[]string{"apps b, a: no live executor (enabled jobs: 7), since 2026-03-02T08:40:00Z"}, []string{"b", "a"}},
		{"five apps, of which one never had any, with what waits for them", func(w *finding.World) {
			darken(w, "never", 1, -1, 0)
			for i, app := range []string{"e", "d", "c", "b"} {
				darken(w, app, 10, 10+i, 2)
			}
		}, []string{"apps b, c, d and 2 more: no live executor (enabled jobs: 41), 8 due runs wait, the oldest for 8m0s, since 2026-03-02T08:47:00Z"}, []string{"b", "c", "d", "e", "never"}},
		{"apps that never had any", func(w *finding.World) { darken(w, "a", 4, -1, 0); darken(w, "b", 3, -1, 0) },
			[]string{"apps a, b: no live executor (enabled jobs: 7, and there never was one)"}, []string{"a", "b"}},
		{"apps without enabled jobs, of which runs wait", func(w *finding.World) { darken(w, "a", 0, 10, 1); darken(w, "b", 0, 20, 1) },
			[]string{"apps b, a: no live executor (no enabled jobs, and due runs), 2 due runs wait, the oldest for 2m0s, since 2026-03-02T08:40:00Z"}, []string{"b", "a"}},
		{"beside what is graver and what is not", func(w *finding.World) {
			w.Shards[1].Owner = "gone-1"
			darken(w, "a", 4, 10, 0)
			darken(w, "b", 3, 20, 0)
			w.Jobs[0].Handler = "mial"
			w.Troubles = []store.Trouble{{Cause: store.TroubleUntold, Detail: "4 alarms wait", Remedy: "Look."}}
		}, []string{"the cluster: shards that no live node has (shards 1)", "apps b, a: no live executor (enabled jobs: 7), since 2026-03-02T08:40:00Z",
			`job 1 "mail" of app shop: no executor has the handler (mial)`, "untold-alarms: 4 alarms wait"}, []string{"b", "a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := well()
			c.harm(&w)
			found := finding.Attention(w)
			before := slices.Clone(found)
			var says []string
			var all *finding.Finding
			list := finding.Together(found)
			for i := range list {
				says = append(says, list[i].String())
				if len(list[i].Apps) > 0 {
					all = &list[i]
				}
			}
			if !slices.Equal(says, c.says) {
				t.Errorf("says\n%q, want\n%q", says, c.says)
			}
			if !slices.EqualFunc(found, before, func(a, b finding.Finding) bool { return a.Key() == b.Key() }) {
				t.Error("what was given is changed")
			}
			switch {
			case all == nil:
				if c.apps != nil {
					t.Error("none is of several apps")
				}
				return
			case !slices.Equal(all.Apps, c.apps) || all.App != "" || !all.Fault() || all.Remedy() == "":
				t.Errorf("it is %+v, want apps %q", all, c.apps)
			case len(all.Runs) != all.Waiting || !slices.IsSortedFunc(all.Runs, func(x, y int64) int { return int(y - x) }):
				t.Errorf("runs %d show that %d wait", all.Runs, all.Waiting)
			case finding.Together(list)[0].String() != list[0].String():
				t.Error("what is together is put together again")
			}
			for _, f := range found { // a mute of one of them is none of all
				if len(f.Jobs) == 0 && finding.Muted([]store.Mute{{Key: f.Key(), App: f.App}}, *all) != nil {
					t.Errorf("the mute of %s is about all", f)
				}
			}
		})
	}
}

// TestTogetherIsBounded: however many runs wait for however many apps, it names as many as others do.
func TestTogetherIsBounded(t *testing.T) {
	w := well()
	for i := range 3 {
		darken(&w, string(rune('a'+i)), 1, i, 15)
	}
	f := finding.Together(finding.Attention(w))[0]
	if len(f.Runs) != finding.MostRuns || f.Waiting != 45 || f.Runs[0] < f.Runs[1] {
		t.Errorf("%d runs of %d that wait: %d", len(f.Runs), f.Waiting, f.Runs)
	}
}
