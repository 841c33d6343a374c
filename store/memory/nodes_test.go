package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// given lists the signals that wait in the channels, and takes them.
func given(s store.Signals) string {
	var names []string
	for _, c := range []struct {
		name string
		ch   <-chan struct{}
	}{{"scan", s.Scan}, {"inbox", s.Inbox}, {"nodes", s.Nodes}, {"ended", s.Ended}} {
		select {
		case <-c.ch:
			names = append(names, c.name)
		default:
		}
	}
	return strings.Join(names, " ")
}

// TestSignals goes through what happens to a node that owns all shards, beside
// another that owns none, and a watcher of no node.
func TestSignals(t *testing.T) {
	f := newFixture(t, 1)
	there := store.LocalAddress("node-2")
	own, other, nobody := f.Watch(t.Context(), here), f.Watch(t.Context(), "node-2"), f.Watch(t.Context(), "")
	var job, delayed store.Job
	var run, waited store.Run
	var ask store.Ask
	var starts []store.Start
	edit := func(replan bool, change func(*store.Job)) {
		_, err := f.EditJob(t.Context(), job.ID, store.Edit{Verb: "update",
			Change: func(j *store.Job) (bool, error) { change(j); return replan, nil },
			Next:   func(store.Job, time.Time, time.Time) (time.Time, error) { return time.Now().Add(time.Hour), nil }})
		f.must(err)
	}
	startBoth := func(address string) {
		_, err := f.Start(t.Context(), nil, starts)
		f.must(err)
	}
	steps := []struct {
		what               string
		do                 func()
		own, other, nobody string
	}{
		{"a node joins", func() {
			_, err := f.Join(t.Context(), store.Node{ID: "node", Incarnation: "node-2"})
			f.must(err)
		}, "nodes", "nodes", "nodes"},
		{"a node beats", func() { _, _ = f.Beat(t.Context(), "node-2", []store.Attachment{}) }, "", "", ""},
		{"a job is added", func() { job = f.job() }, "scan", "", ""},
		{"a job is edited", func() { edit(false, func(j *store.Job) { j.Author = "me" }) }, "", "", ""},
		{"a job is planned anew", func() { edit(true, func(j *store.Job) {}); job, _ = f.Job(t.Context(), job.ID) }, "scan", "", ""},
		{"a run is added", func() { run, _ = f.AddRun(t.Context(), job.ID, store.Trigger{}) }, "scan", "", ""},
		{"a run starts at its owner's", func() {
			starts = []store.Start{f.start(run, store.LocalAddress(here), job.Version)}
			startBoth(here)
		}, "", "", ""},
		{"a run ends", func() { _, _ = f.Finish(t.Context(), nil, []store.Result{{RunID: run.ID, State: store.StateFailed}}) }, "ended", "ended", "ended"},
		{"a run ends again", func() { _, _ = f.Finish(t.Context(), nil, []store.Result{{RunID: run.ID, State: store.StateFailed}}) }, "", "", ""},
		{"a run starts elsewhere", func() { run = f.started(job.ID, there) }, "scan", "inbox", ""},
		{"it is to be killed", func() { _, _ = f.Kill(t.Context(), run.ID, "x") }, "", "inbox", ""},
		{"its log is asked for", func() {
			ask, _ = f.AskLog(t.Context(), store.Ask{Incarnation: "node-2", Run: run, FromLine: 1})
		}, "", "inbox", ""},
		{"the question is answered", func() { _ = f.AnswerLog(t.Context(), ask.ID, store.Answer{}) }, "ended", "ended", "ended"},
		{"it is answered again", func() { _ = f.AnswerLog(t.Context(), ask.ID, store.Answer{}) }, "", "", ""},
		{"it is taken, and so ends", func() { _, _ = f.Take(t.Context(), "node-2", []int64{run.ID}) }, "ended", "ended", "ended"},
		{"a run starts far away", func() { run = f.started(job.ID, "http://far") }, "scan", "", ""},
		{"it is readdressed", func() {
			_, _ = f.Readdress(t.Context(), store.Readdress{RunID: run.ID, Epoch: f.shards[0].Epoch, Owner: here, Token: run.Token, Address: there})
		}, "", "inbox", ""},
		{"it is put back", func() {
			_, _ = f.Settle(t.Context(), []store.Verdict{{RunID: run.ID, Epoch: f.shards[0].Epoch, Owner: here, Token: run.Token, To: store.StatePlanned}})
		}, "scan", "", ""},
		{"a claim", func() {
			delayed = f.job(func(j *store.Job) { j.Schedule = schedule.FixedDelay(time.Second) })
			given(own)
			p := f.plan(delayed, 1)
			p.Wait = true
			runs, err := f.Claim(t.Context(), nil, []store.Plan{p})
			f.must(err)
			waited = runs[0]
		}, "", "", ""},
		{"a job is armed again", func() { _, _ = f.Kill(t.Context(), waited.ID, "x") }, "scan ended", "ended", "ended"},
		{"a job is removed", func() { f.must(f.RemoveJob(t.Context(), delayed.ID)) }, "", "", ""},
		{"a node is buried", func() { f.must(f.Bury(t.Context(), "node-2", 2)) }, "nodes", "nodes", "nodes"},
		{"it is buried with other beats", func() { f.must(f.Bury(t.Context(), "node-2", 7)) }, "", "", ""},
		{"it beats", func() { _, _ = f.Beat(t.Context(), "node-2", []store.Attachment{}) }, "nodes", "nodes", "nodes"},
		{"it fails", func() { f.must(f.SetFailing(t.Context(), "node-2", true)) }, "nodes", "nodes", "nodes"},
		{"it fails on", func() { f.must(f.SetFailing(t.Context(), "node-2", true)) }, "", "", ""},
		{"it leaves", func() { f.must(f.Leave(t.Context(), "node-2")) }, "nodes", "nodes", "nodes"},
		{"it leaves again", func() { f.must(f.Leave(t.Context(), "node-2")) }, "", "", ""},
		{"it beats after it left", func() { _, _ = f.Beat(t.Context(), "node-2", []store.Attachment{}) }, "nodes", "nodes", "nodes"},
		{"foreign shards are released", func() { f.must(f.ReleaseShards(t.Context(), "node-2", f.shards)) }, "", "", ""},
		{"shards are released", func() { f.must(f.ReleaseShards(t.Context(), here, f.shards)) }, "nodes", "nodes", "nodes"},
		{"a job is added where nobody is", func() { job = f.job() }, "", "", ""},
	}
	given(own)
	for _, s := range steps {
		s.do()
		want(t, s.what+": own", given(own), s.own)
		want(t, s.what+": other", given(other), s.other)
		want(t, s.what+": nobody", given(nobody), s.nobody)
	}
	f.must(f.Consistent())
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := f.Watch(ctx, here), f.Watch(t.Context(), here)
		cancel()
		synctest.Wait()
		want(t, "watchers", f.Watchers(), 1)
		f.job()
		want(t, "after the end", given(first), "")
		want(t, "the other", given(second), "scan")
		want(t, "watched by a context that has ended", given(f.Watch(ctx, here)), "")
		want(t, "watchers", f.Watchers(), 1)
	})
}

func TestAlone(t *testing.T) {
	f := newFixture(t, 1)
	alone := func() bool {
		v, err := f.Beat(t.Context(), here, []store.Attachment{})
		f.must(err)
		return v.Alone
	}
	want(t, "one node", alone(), true)
	v, err := f.Join(t.Context(), store.Node{ID: "b", Incarnation: "b-1"})
	f.must(err)
	want(t, "two nodes, seen by the second", v.Alone, false)
	want(t, "two nodes", alone(), false)
	f.must(f.Leave(t.Context(), "b-1"))
	want(t, "the other has left", alone(), true)
	_, err = f.Beat(t.Context(), "b-1", []store.Attachment{})
	f.must(err)
	want(t, "the other came back", alone(), false)
	f.must(f.Bury(t.Context(), "b-1", 2))
	want(t, "the other is buried", alone(), true)
}

// A node that was deleted comes back as it was: not as the latest of its ID.
func TestBuriedNodeKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		joined := time.Now().UTC()
		time.Sleep(time.Minute)
		f.must(f.Bury(t.Context(), here, 1))
		v, err := f.Join(t.Context(), store.Node{ID: "node", Incarnation: "node-9"})
		f.must(err)
		want(t, "nodes", len(v.Nodes), 1)
		want(t, "the dead owner's shard is free", v.Shards[0].Free, true)
		v, err = f.Beat(t.Context(), here, []store.Attachment{})
		f.must(err)
		want(t, "the node", v.Nodes[0], store.Node{ID: "node", Incarnation: here, Beats: 1, Joined: joined})
		want(t, "its shard is free", v.Shards[0].Free, false)
		v, err = f.Beat(t.Context(), "x-y-z", []store.Attachment{})
		f.must(err)
		want(t, "a node nobody knows", v.Nodes[2], store.Node{ID: "x-y", Incarnation: "x-y-z", Beats: 1})
	})
}

func TestWritesNeedShards(t *testing.T) {
	f := &fixture{TB: t, Store: memory.New()}
	_, err := f.AddJob(t.Context(), store.Job{}, nil)
	if err == nil || !strings.Contains(err.Error(), "SetShards") {
		t.Errorf("AddJob before SetShards: %v", err)
	}
	if err := f.SetShards(t.Context(), 0); err == nil {
		t.Error("no shards were accepted")
	}
	f.must(f.SetShards(t.Context(), 3))
	f.must(f.SetShards(t.Context(), 3))
	err = f.SetShards(t.Context(), 4)
	if !errors.Is(err, store.ErrShards) || !strings.Contains(err.Error(), "3 shards, not 4") {
		t.Errorf("another number of shards: %v", err)
	}
}

// TestAsksAreDropped looks at an open and at an answered question shortly before
// and after a minute.
func TestAsksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		run, err := f.AddRun(t.Context(), f.job().ID, store.Trigger{})
		f.must(err)
		ask := func() int64 {
			a, err := f.AskLog(t.Context(), store.Ask{Incarnation: here, Run: run, FromLine: 1})
			f.must(err)
			return a.ID
		}
		kept := func(what string, open, answered int64, want bool) {
			t.Helper()
			in, err := f.Inbox(t.Context(), here, 0, 10)
			f.must(err)
			if has := len(in.Asks) > 0 && in.Asks[0].ID == open; has != want {
				t.Errorf("%s: question in the inbox: %v, want %v", what, has, want)
			}
			for _, id := range []int64{open, answered} {
				_, is, err := f.LogAnswer(t.Context(), id)
				if absent := errors.Is(err, store.ErrNotFound); absent == want || is != (want && id == answered) {
					t.Errorf("%s: question %d: answered %v, %v", what, id, is, err)
				}
			}
		}
		open, answered := ask(), ask()
		f.must(f.AnswerLog(t.Context(), answered, store.Answer{Content: "x\n"}))
		time.Sleep(time.Minute - time.Millisecond)
		kept("shortly before", open, answered, true)
		time.Sleep(time.Millisecond)
		f.must(f.AnswerLog(t.Context(), open, store.Answer{Content: "late\n"}))
		kept("a minute after", open, answered, false)
		if n := f.Asks(); n != 0 {
			t.Errorf("%d questions are kept", n)
		}
	})
}
