package finding_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// well is a cluster in which nothing is wrong, with things that look like it: jobs that were stopped by
// somebody or have had their last instant, runs that were covered or discarded, an attempt that failed and
// of which another one has succeeded, or follows, and a run that has waited for a second.
func well() finding.World {
	job := func(id int64, name string, change func(*store.Job)) store.Job {
		j := store.Job{ID: id, App: "shop", Name: name, Handler: name, Schedule: schedule.FixedRate(time.Minute), Next: now.Add(30 * time.Second), Last: now.Add(-30 * time.Second)}
		if change != nil {
			change(&j)
		}
		return j
	}
	w := finding.World{
		Now:    now,
		Nodes:  []store.Node{{ID: "a", Incarnation: "a-1", Attached: []store.Attachment{{App: "shop", Handlers: []string{"mail", "bill", "sum", "once", "off"}}}}, {ID: "gone", Incarnation: "gone-1", Left: true, Away: true}},
		Shards: []store.Shard{{ID: 0, Owner: "a-1"}, {ID: 1, Owner: "a-1"}},
		Counts: []store.JobCount{{App: "shop", Enabled: 3, Stopped: 2}, {App: "idle", Stopped: 4, Manual: 2}},
		Groups: []store.Group{{App: "shop"}, {App: "idle"}},
		Jobs: []store.Job{job(1, "mail", nil), job(2, "bill", nil), job(3, "sum", nil),
			job(4, "once", func(j *store.Job) { j.Stopped, j.StopReason, j.Next = true, store.StopFinished, time.Time{} }),
			job(5, "off", func(j *store.Job) { j.Stopped = true }),
			job(6, "pruned", func(j *store.Job) { j.Stopped, j.StopReason = true, store.StopPruned })},
	}
	for i := range 12 {
		w.Ended = append(w.Ended, ended(1, i, store.StateSucceeded, ""))
	}
	for i, st := range []store.State{store.StateKilled, store.StateDiscarded, store.StateKilled, store.StateSkipped, store.StateCancelled} {
		w.Ended = append(w.Ended, ended(2, i, st, ""))
	}
	first := ended(3, 1, store.StateFailed, "connection refused")
	first.Retries = 1
	second := ended(3, 0, store.StateSucceeded, "")
	second.TriggerID, second.Type, second.Attempt = first.ID, store.TriggerRetry, 1
	open := ended(3, 3, store.StateFailed, "connection refused")
	open.Retries = 2
	w.Ended = append(w.Ended, second, first, open)
	failed, killed := ended(3, 6, store.StateFailed, "connection refused"), ended(3, 5, store.StateKilled, "unwanted")
	failed.Retries, killed.TriggerID, killed.Type, killed.Attempt, killed.KillReason = 1, failed.ID, store.TriggerRetry, 1, "unwanted"
	unwanted := ended(3, 7, store.StateFailed, "context canceled")
	unwanted.KillReason = "unwanted"
	w.Ended = append(w.Ended, killed, failed, unwanted)
	w.Waiting = []store.Run{{ID: 77, JobID: 1, App: "shop", Scheduled: now.Add(-time.Second)}}
	return w
}

// ended is a run of a job that ended so many minutes ago.
func ended(job int64, ago int, state store.State, msg string) store.Run {
	at := now.Add(-time.Duration(ago+1) * time.Minute)
	id := job*1_000_000 - int64(ago)
	return store.Run{ID: id, TriggerID: id, JobID: job, App: "shop", Scheduled: at, Started: at, Created: at, Ended: at.Add(2 * time.Second), State: state, HandleMsg: msg, Count: 1, First: at}
}

// ill are worlds in each of which one thing is wrong, what is found, and what is done about it by whoever
// follows the remedy.
var ill = []struct {
	name   string
	harm   func(w *finding.World)
	cause  finding.Cause
	jobs   []int64
	says   string // the sentence
	remedy func(w *finding.World)
}{
	{"a shard without a node", func(w *finding.World) { w.Shards[1].Owner = "gone-1" }, finding.ShardUnowned, nil, "the cluster: shards that no live node has (shards 1)",
		func(w *finding.World) { w.Shards[1].Owner = "a-1" }},
	{"a silent node", func(w *finding.World) { w.Nodes = append(w.Nodes, store.Node{ID: "b", Incarnation: "b-1", Away: true}) }, finding.NodeSilent, nil, "the cluster: a node is silent (b)",
		func(w *finding.World) { w.Nodes[2].Left = true }},
	{"a failing node", func(w *finding.World) { w.Nodes[0].Failing = true }, finding.NodeFailing, nil, "the cluster: a node's claims or starts fail (a)",
		func(w *finding.World) { w.Nodes[0].Failing = false }},
	{"an app that nobody serves", func(w *finding.World) {
		w.Counts = append(w.Counts, store.JobCount{App: "dark", Enabled: 40})
		w.Served = []store.Served{{App: "dark", By: store.ServedRegistered, Gone: now.Add(-time.Hour)}}
		for i := range 40 { // their runs wait, which is no cause of its own
			w.Waiting = append(w.Waiting, store.Run{ID: int64(500 - i), JobID: int64(50 + i), App: "dark", Scheduled: now.Add(-10 * time.Minute)})
		}
	}, finding.NoExecutor, nil, "app dark: no live executor (enabled jobs: 40), 40 due runs wait, the oldest for 10m0s, since 2026-03-02T08:00:00Z", func(w *finding.World) {
		w.Registrations = []store.Registration{{App: "dark", Address: "http://d", Updated: now.Add(-20 * time.Second)}}
		w.Served[0].Gone, w.Waiting = time.Time{}, nil
	}},
	{"an app that never had anybody", func(w *finding.World) {
		w.Counts = append(w.Counts, store.JobCount{App: "new", Enabled: 1})
		w.Registrations = []store.Registration{{App: "new", Address: "http://d", Updated: now.Add(-time.Hour)}}
	}, finding.NoExecutor, nil, "app new: no live executor (enabled jobs: 1, and there never was one)", func(w *finding.World) { w.Counts[2].Enabled, w.Counts[2].Stopped = 0, 1 }},
	{"a handler that nobody has", func(w *finding.World) { w.Jobs[0].Handler = "mial" }, finding.NoHandler, []int64{1}, `job 1 "mail" of app shop: no executor has the handler (mial)`,
		func(w *finding.World) { w.Jobs[0].Handler = "mail" }},
	{"a handler that no executor elsewhere has", func(w *finding.World) {
		w.Nodes[0].Attached, w.Registrations = nil, []store.Registration{{App: "shop", Address: "http://d", Updated: now}}
		w.Ended = fails(1, 3, "job handler [mail] not found.")
	}, finding.NoHandler, []int64{1}, `job 1 "mail" of app shop: no executor has the handler, 3 of the last 3, since 2026-03-02T08:57:02Z: job handler [mail] not found.`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"a job that fails", func(w *finding.World) { w.Ended = fails(1, 4, "dial tcp 10.1.2.3:5432: i/o timeout\nat main.go:17") }, finding.Failing, []int64{1},
		`job 1 "mail" of app shop: fails, 4 of the last 4, since 2026-03-02T08:56:02Z: dial tcp 10.1.2.3:5432: i/o timeout`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"jobs that fail with one error", func(w *finding.World) {
		w.Ended = append(fails(1, 4, "dial tcp 10.1.2.3:5432: i/o timeout"), fails(2, 3, "dial tcp 10.1.2.4:5432: i/o timeout")...)
	}, finding.Failing, []int64{1, 2}, `2 jobs of app shop, "mail" among them: fails, 7 of the last 7, since 2026-03-02T08:56:02Z: dial tcp 10.1.2.3:5432: i/o timeout`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1), again(2)}, w.Ended...) }},
	{"a daily job that has failed once", func(w *finding.World) {
		w.Jobs[1].Schedule = schedule.Cron("0 0 3 * * ?")
		w.Ended = fails(2, 1, "no space left")
	}, finding.Failing, []int64{2}, `job 2 "bill" of app shop: fails, 1 of the last 1, since 2026-03-02T08:59:02Z: no space left`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(2)}, w.Ended...) }},
	{"a daily job that has failed, and its retry was discarded", func(w *finding.World) {
		w.Jobs[1].Schedule = schedule.Cron("0 0 3 * * ?")
		first, retry := ended(2, 1, store.StateFailed, "no room left"), ended(2, 0, store.StateDiscarded, "Discard Later")
		first.Retries, retry.TriggerID, retry.Type, retry.Attempt = 1, first.ID, store.TriggerRetry, 1
		w.Ended = []store.Run{retry, first}
	}, finding.Failing, []int64{2}, `job 2 "bill" of app shop: fails, 1 of the last 1, since 2026-03-02T08:58:02Z: no room left`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(2)}, w.Ended...) }},
	{"the same with a retry that was covered, of which no more is known", func(w *finding.World) {
		w.Jobs[1].Schedule = schedule.Cron("0 0 3 * * ?")
		retry := ended(2, 0, store.StateKilled, "Cover Early")
		retry.TriggerID, retry.Type, retry.Attempt = 7, store.TriggerRetry, 1
		w.Ended = []store.Run{retry}
	}, finding.Failing, []int64{2}, `job 2 "bill" of app shop: fails, 1 of the last 1, since 2026-03-02T08:59:02Z: Cover Early`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(2)}, w.Ended...) }},
	{"a daily job that has failed, and nothing follows though retries were left", func(w *finding.World) {
		w.Jobs[1].Schedule = schedule.Cron("0 0 3 * * ?")
		w.Ended = fails(2, 1, "no disk left")
		w.Ended[0].Retries, w.Ended[0].TriggerMsg = 2, "routed\nnothing follows: the first run of the trigger is too old"
	}, finding.Failing, []int64{2}, `job 2 "bill" of app shop: fails, 1 of the last 1, since 2026-03-02T08:59:02Z: no disk left`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(2)}, w.Ended...) }},
	{"a part of a broadcast that fails", func(w *finding.World) {
		w.Ended = nil
		for i := range 3 { // each trigger: part 1 has failed before part 0 succeeded
			good, bad := ended(1, 2*i, store.StateSucceeded, ""), ended(1, 2*i+1, store.StateFailed, "disk full")
			good.TriggerID, good.Sharding, bad.TriggerID, bad.Sharding = bad.ID, store.Sharding{Index: 0, Total: 2}, bad.ID, store.Sharding{Index: 1, Total: 2}
			w.Ended = append(w.Ended, good, bad)
		}
	}, finding.Failing, []int64{1}, `job 1 "mail" of app shop: fails, 3 of the last 3, since 2026-03-02T08:54:02Z: disk full`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"a job that times out", func(w *finding.World) { w.Ended = ends(1, 3, store.StateTimedOut, "") }, finding.TimingOut, []int64{1}, `job 1 "mail" of app shop: runs out of time, 3 of the last 3, since 2026-03-02T08:57:02Z`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"runs that are lost", func(w *finding.World) { w.Ended = ends(1, 3, store.StateLost, "the node is gone") }, finding.Losing, []int64{1}, `job 1 "mail" of app shop: runs are lost with their process, 3 of the last 3, since 2026-03-02T08:57:02Z: the node is gone`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"runs that nobody takes", func(w *finding.World) { w.Ended = ends(1, 3, store.StateRefused, "no address answered well") }, finding.Refused, []int64{1}, `job 1 "mail" of app shop: no address takes the runs, 3 of the last 3, since 2026-03-02T08:57:02Z: no address answered well`,
		func(w *finding.World) { w.Ended = append([]store.Run{again(1)}, w.Ended...) }},
	{"a job that has stopped by itself", func(w *finding.World) {
		w.Jobs[4].StopReason, w.Jobs[4].Updated = "cron: minute 61", now.Add(-time.Hour)
	}, finding.Stopped, []int64{5},
		`job 5 "off" of app shop: has stopped by itself, since 2026-03-02T08:00:00Z: cron: minute 61`, func(w *finding.World) { w.Jobs[4].Stopped, w.Jobs[4].StopReason = false, "" }},
	{"a job that is never due", func(w *finding.World) { w.Jobs[0].Next = time.Time{} }, finding.NeverFires, []int64{1}, `job 1 "mail" of app shop: enabled, and never due`,
		func(w *finding.World) { w.Jobs[0].Stopped = true }},
	{"a job that falls behind", func(w *finding.World) {
		w.Ended = nil
		for i := range 5 {
			r := ended(1, 2*i, store.StateSucceeded, "")
			r.Started = r.Ended.Add(-90 * time.Second)
			w.Ended = append(w.Ended, r)
		}
		w.Running = []store.Run{{ID: 90, JobID: 1, App: "shop", State: store.StateStarted, Started: now.Add(-40 * time.Second)}}
		for i := range 5 {
			w.Waiting = append(w.Waiting, store.Run{ID: int64(91 + i), JobID: 1, JobName: "mail", App: "shop", Scheduled: now.Add(-time.Duration(i+1) * time.Minute)})
		}
	}, finding.FallingBehind, []int64{1}, `job 1 "mail" of app shop: runs take longer than the time between them (a run takes 1m30s, one is due each 1m0s), 5 due runs wait, the oldest for 5m0s, since 2026-03-02T08:55:00Z`,
		func(w *finding.World) { w.Waiting = nil }},
	{"due runs that wait", func(w *finding.World) {
		for i := range 3 {
			w.Waiting = append(w.Waiting, store.Run{ID: int64(91 + i), JobID: int64(1 + i), JobName: "mail", App: "shop", Scheduled: now.Add(-time.Minute)})
		}
	}, finding.Overdue, []int64{1, 2, 3}, `3 jobs of app shop, "mail" among them: due runs wait, 3 due runs wait, the oldest for 1m0s, since 2026-03-02T08:59:00Z`,
		func(w *finding.World) { w.Waiting = nil }},
	{"alarms that nobody was told of", func(w *finding.World) { w.Ended[0].AlarmStatus = store.AlarmFailed }, finding.AlarmsUndelivered, nil, "app shop: alarms could not be delivered, 1 of the last 1, since 2026-03-02T08:59:02Z",
		func(w *finding.World) { w.Ended[0].AlarmStatus = store.AlarmSent }},
	{"a job that fails now and then", func(w *finding.World) {
		w.Ended = nil
		for i := range 20 {
			w.Ended = append(w.Ended, ended(1, i, map[bool]store.State{true: store.StateFailed, false: store.StateSucceeded}[i == 2 || i == 4 || i == 8 || i == 15], "sometimes"))
		}
	}, finding.Flapping, []int64{1}, `job 1 "mail" of app shop: fails more often than before, 4 of the last 20, since 2026-03-02T08:51:02Z: sometimes`,
		func(w *finding.World) {
			for i := range 10 {
				w.Ended = append([]store.Run{ended(1, -i-2, store.StateSucceeded, "")}, w.Ended...)
			}
		}},
	{"what a scheduler says of itself", func(w *finding.World) {
		w.Troubles = []store.Trouble{{Cause: store.TroubleLockedRows, Since: now, Holder: "pid 7", Detail: "rows are locked", Remedy: "End it."}, {Cause: store.TroubleNoExecutor, App: "shop"}}
	}, finding.Cause(store.TroubleLockedRows), nil, "locked-rows: rows are locked", func(w *finding.World) { w.Troubles = nil }},
}

// fails are so many failed runs of a job, one a minute, newest first.
func fails(job int64, n int, msg string) []store.Run { return ends(job, n, store.StateFailed, msg) }

func ends(job int64, n int, state store.State, msg string) (runs []store.Run) {
	for i := range n {
		runs = append(runs, ended(job, i, state, msg))
	}
	return runs
}

// again is a run of a job that has succeeded just now.
func again(job int64) store.Run { return ended(job, -1, store.StateSucceeded, "") }

func TestAttention(t *testing.T) {
	if all := finding.Attention(well()); len(all) > 0 {
		t.Fatalf("where all is well: %v", all)
	}
	for _, c := range ill {
		t.Run(c.name, func(t *testing.T) {
			w := well()
			c.harm(&w)
			all := finding.Attention(w)
			if len(all) != 1 {
				t.Fatalf("%d findings, want one: %v", len(all), all)
			}
			f := all[0]
			if f.Cause != c.cause || !slices.Equal(f.Jobs, c.jobs) {
				t.Errorf("%s of jobs %d, want %s of %d", f.Cause, f.Jobs, c.cause, c.jobs)
			}
			if f.String() != c.says {
				t.Errorf("says\n%s, want\n%s", f, c.says)
			}
			if f.Remedy() == "" || !f.Fault() {
				t.Errorf("no remedy, or no fault")
			}
			if len(f.Jobs) > 0 && f.Bad > 0 && len(f.Runs) != f.Bad {
				t.Errorf("%d runs show %d bad ends", len(f.Runs), f.Bad)
			}
			c.remedy(&w)
			if left := finding.Attention(w); len(left) > 0 {
				t.Errorf("after the remedy: %v", left)
			}
		})
	}
}

// TestGravity: what explains the rest comes first, whatever is found with it.
func TestGravity(t *testing.T) {
	w := well()
	var want []finding.Cause
	for _, name := range []string{"a shard without a node", "an app that nobody serves", "a handler that nobody has", "a job that has stopped by itself", "due runs that wait"} {
		for _, c := range ill {
			if c.name == name {
				c.harm(&w)
				want = append(want, c.cause)
			}
		}
	}
	w.Ended = fails(2, 3, "refused")
	want = slices.Insert(want, 3, finding.Failing)
	var got []finding.Cause
	for _, f := range finding.Attention(w) {
		got = append(got, f.Cause)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKey: a cause has one key while it lasts, and two causes have two.
func TestKey(t *testing.T) {
	keys := map[string]string{}
	for _, c := range ill {
		w := well()
		c.harm(&w)
		f := finding.Attention(w)[0]
		key := f.Key()
		if c.cause == finding.Failing && strings.Contains(c.says, "dial tcp") { // what fails with the same error, from elsewhere
			w.Ended = append(fails(1, 3, "dial tcp 10.9.9.9:1: i/o timeout"), w.Ended...)
			if again := finding.Attention(w)[0].Key(); again != key {
				t.Errorf("%s: key %q, and later %q", c.name, key, again)
			}
			key = c.name
		}
		if c.cause == finding.NoHandler {
			continue // of one job each time
		}
		if other, twice := keys[key]; twice {
			t.Errorf("%q and %q have one key, %q", c.name, other, key)
		}
		keys[key] = c.name
	}
}

// TestSecretErrors: a job that is secret and fails with the error of another is a finding of its own,
// whose key and sentence tell nothing of the error.
func TestSecretErrors(t *testing.T) {
	for _, flaps := range []bool{false, true} {
		w := well()
		w.Jobs[1].Secret = true
		w.Ended = nil
		for _, job := range []int64{1, 2} {
			runs := fails(job, 10, "the password is swordfish")
			for i := range runs {
				if flaps && i%2 == 0 {
					runs[i].State = store.StateSucceeded
				}
			}
			w.Ended = append(w.Ended, runs...)
		}
		found := finding.Attention(w)
		if len(found) != 2 || len(found[0].Jobs) != 1 || len(found[1].Jobs) != 1 || found[0].Secret == found[1].Secret {
			t.Fatalf("found is %v", found)
		}
		secret := found[0]
		if !secret.Secret {
			secret = found[1]
		}
		w.Ended = w.Ended[10:]
		for i := range w.Ended {
			w.Ended[i].HandleMsg = "another text"
		}
		other := finding.Attention(w)
		if secret.Jobs[0] != 2 || len(other) != 1 || other[0].Key() != secret.Key() {
			t.Errorf("the key %q of the secret job is another one with another error: %v", secret.Key(), other)
		}
		for _, s := range []string{secret.String(), finding.WhyJob(w, 2)[0].String()} {
			if strings.Contains(s, "swordfish") || strings.Contains(s, "another text") {
				t.Errorf("the sentence says the error: %s", s)
			}
		}
	}
}

func TestSignature(t *testing.T) {
	for _, same := range [][]string{
		{"dial tcp 10.1.2.3:5432: i/o timeout", "dial tcp 10.22.3.4:6543: i/o timeout"},
		{"run 491955074925691 of \"a\" failed", "run 17 of \"b\" failed"},
		{"user 6f9619ff-8b86-d011-b42d-00cf4fc964ff not found", "user 1c0e3a7b-0000-4011-b42d-00cf4fc964aa not found\nstack"},
		{"took 1.5s (limit 1s)", "took 12.25s (limit 1s)"},
	} {
		if a, b := finding.Signature(same[0]), finding.Signature(same[1]); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	for _, differ := range [][]string{{"disk full", "disk failed"}, {"utf8 expected", "http2 expected"}, {"404 page", "page"}} {
		if a := finding.Signature(differ[0]); a == finding.Signature(differ[1]) {
			t.Errorf("%q is the same of %q", a, differ)
		}
	}
	if s := finding.Signature("错误：连接 10.0.0.1 超时"); s != "错误：连接 # 超时" {
		t.Error(s)
	}
}
