package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// A panic in a function of the caller's changes nothing and leaves the store
// usable.
func TestPanicsInEdit(t *testing.T) {
	boom := func() { panic("boom") }
	edits := map[string]store.Edit{
		"Change": {Verb: "update", Change: func(j *store.Job) (bool, error) {
			j.Name, j.Children = "half", append(j.Children, 9)
			boom()
			return false, nil
		}},
		"Next": {Verb: "update",
			Change: func(j *store.Job) (bool, error) { j.Name, j.Children[0] = "half", 9; return true, nil },
			Next:   func(store.Job, time.Time, time.Time) (time.Time, error) { boom(); return time.Time{}, nil }},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1)
			j := f.job(func(j *store.Job) { j.Children = []int64{1} })
			runs, err := f.Claim(t.Context(), nil, []store.Plan{f.plan(j, 2)})
			f.must(err)
			before, err := f.Job(t.Context(), j.ID)
			f.must(err)
			func() {
				defer func() { want(t, "panic", recover(), "boom") }()
				_, _ = f.EditJob(t.Context(), j.ID, edit)
			}()
			after, err := f.Job(t.Context(), j.ID)
			f.must(err)
			want(t, "job", after, before)
			want(t, "planned runs", f.list(store.RunFilter{States: []store.State{store.StatePlanned}}), idsOf(runs))
			changes, err := f.Changes(t.Context(), j.ID, 9)
			f.must(err)
			want(t, "entries of the audit", len(changes), 1)
			f.must(f.Consistent())
		})
	}
}

// Neither side sees what the other does to a value later.
func TestValuesAreCopied(t *testing.T) {
	f := newFixture(t, 1)
	children := []int64{1, 2}
	j := f.job(func(j *store.Job) { j.Children = children })
	children[0], j.Children[1] = 7, 7
	listed, err := f.Jobs(t.Context(), store.JobFilter{})
	f.must(err)
	listed[0].Children[0] = 8
	var given []int64
	_, err = f.EditJob(t.Context(), j.ID, store.Edit{
		Change: func(j *store.Job) (bool, error) { given = j.Children; j.Author = "me"; return true, nil },
		Next: func(j store.Job, _, _ time.Time) (time.Time, error) {
			j.Children[0] = 9
			return time.Now(), nil
		},
	})
	f.must(err)
	given[1] = 9
	stored, err := f.Job(t.Context(), j.ID)
	f.must(err)
	want(t, "children", stored.Children, []int64{1, 2})

	addresses := []string{"a", "b"}
	r, err := f.AddRun(t.Context(), j.ID, store.Trigger{Addresses: addresses})
	f.must(err)
	addresses[0], r.Addresses[1] = "x", "x"
	r, err = f.Run(t.Context(), r.ID)
	f.must(err)
	want(t, "addresses of a run", r.Addresses, []string{"a", "b"})

	attached := []store.Attachment{{App: "app", Handlers: []string{"h"}}}
	v, err := f.Beat(t.Context(), here, attached)
	f.must(err)
	attached[0].Handlers[0], v.Nodes[0].Attached[0].App = "x", "x"
	v, err = f.Join(t.Context(), store.Node{ID: "z", Incarnation: "z"})
	f.must(err)
	want(t, "attached", v.Nodes[0].Attached, []store.Attachment{{App: "app", Handlers: []string{"h"}}})

	g := store.Group{App: "app", Manual: true, Addresses: []string{"a"}}
	f.must(f.SaveGroup(t.Context(), g))
	g.Addresses[0] = "x"
	g, err = f.Group(t.Context(), "app")
	f.must(err)
	g.Addresses[0] = "y"
	g, err = f.Group(t.Context(), "app")
	f.must(err)
	want(t, "addresses of a group", g.Addresses, []string{"a"})
}

// A claim may not be repeated for a job without a next instant.
func TestClaimNeedsAnInstant(t *testing.T) {
	f := newFixture(t, 1)
	j := f.job(func(j *store.Job) { j.Next = time.Time{} })
	runs, err := f.Claim(t.Context(), nil, []store.Plan{f.plan(j, 1)})
	f.must(err)
	want(t, "runs", len(runs), 0)
}

// A FixedDelay job that waits for a record is armed by it at once.
func TestWaitForARecord(t *testing.T) {
	f := newFixture(t, 1)
	j := f.job(func(j *store.Job) { j.Schedule = schedule.FixedDelay(time.Minute) })
	p := f.plan(j, 1)
	p.Wait, p.Runs[0].State = true, store.StateSkipped
	runs, err := f.Claim(t.Context(), nil, []store.Plan{p})
	f.must(err)
	j, err = f.Job(t.Context(), j.ID)
	f.must(err)
	want(t, "next", j.Next, runs[0].Ended.Add(time.Minute))
	want(t, "waits for", j.WaitRun, 0)
	want(t, "stopped", j.Stopped, false)
	f.must(f.Consistent())
}

// A put-back run is planned as it was before its start.
func TestPutBackForgetsTheStart(t *testing.T) {
	f := newFixture(t, 1)
	j := f.job()
	r, err := f.AddRun(t.Context(), j.ID, store.Trigger{})
	f.must(err)
	s := f.start(r, store.LocalAddress(here), j.Version)
	s.Param, s.Retries, s.Block = "p", 3, "b"
	_, err = f.Start(t.Context(), nil, []store.Start{s})
	f.must(err)
	back, err := f.Settle(t.Context(), []store.Verdict{{
		RunID: r.ID, Epoch: s.Epoch, Owner: here, Token: s.Token, Taken: true, To: store.StatePlanned}})
	f.must(err)
	r.Retries = 3
	want(t, "run", back[0], r)
	res, err := f.Scan(t.Context(), store.ScanResult{}, store.ScanQuery{Shards: f.shards, Before: time.Now(), Runs: 9, Jobs: 9})
	f.must(err)
	want(t, "scanned", idsOf(res.Runs), []int64{r.ID})
	f.must(f.Consistent())
}

// TestAddedJobsAreRecordedAsTheyWere: the entry about a job that was added says what the job was
// then and who has added it, however often the job has changed since, and when its definition is
// let go of; searches find it by all that an entry has.
func TestAddedJobsAreRecordedAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2)
		ctx := store.WithClient(store.WithActor(t.Context(), "ann"), "10.0.0.1", "r1")
		j, err := f.AddJob(ctx, store.Job{App: "app", Key: "k", Name: "first", Handler: "h", Tags: []string{"a"}, Stopped: true}, nil)
		f.must(err)
		check := func(when string) {
			t.Helper()
			for name, q := range map[string]store.ChangeSearch{
				"verb": {Verb: "add"}, "actor": {Actor: "ann"}, "object": {Object: store.ObjectJob, Verb: "add"}, "id": {Object: store.ObjectJob, ObjectID: fmt.Sprint(j.ID), Verb: "add"},
				"job": {JobID: j.ID, Verb: "add"}, "app": {Apps: []string{"app"}, Verb: "add"}, "since": {Since: j.Added, Until: j.Added.Add(time.Millisecond), Verb: "add"},
			} {
				found, err := f.SearchChanges(t.Context(), q)
				f.must(err)
				if len(found.Changes) != 1 {
					t.Errorf("%s, by %s: %d entries", when, name, len(found.Changes))
					continue
				}
				c := found.Changes[0]
				if c.Verb != "add" || c.Version != 1 || c.JobID != j.ID || c.App != "app" || c.Actor != "ann" || c.Client != "10.0.0.1" || c.RequestID != "r1" ||
					!c.At.Equal(j.Added) || c.Before != "" || !strings.Contains(c.After, `"Name":"first"`) || !strings.Contains(c.After, `"Stopped":true`) || !strings.Contains(c.After, `"Tags":["a"]`) {
					t.Errorf("%s, by %s: %+v", when, name, c)
				}
			}
		}
		check("at first")
		for i := range 150 {
			_, err := f.EditJob(t.Context(), j.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) {
				j.Name, j.Tags, j.Stopped = fmt.Sprint("name ", i), nil, false
				return false, nil
			}})
			f.must(err)
			if i == 0 {
				check("after an edit")
				was, err := f.JobAt(t.Context(), j.ID, 1)
				f.must(err)
				want(t, "the first definition", was.Name, "first")
			}
		}
		check("after many edits")
		list, err := f.Changes(t.Context(), j.ID, 1000)
		f.must(err)
		want(t, "entries about the job", len(list), 100)
		f.must(f.Consistent())
		f.must(f.DropChanges(t.Context(), j.Added.Add(time.Nanosecond)))
		found, err := f.SearchChanges(t.Context(), store.ChangeSearch{})
		f.must(err)
		want(t, "entries that are left", len(found.Changes), 0)
		f.must(f.Consistent())
	})
}
