package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Mutes. A store need not keep any: then these cases say nothing.

func muteCases() []testCase {
	with := func(e *env, k store.MuteKeeper) *muting { return &muting{env: e, keeper: k} }
	return optionalCases(with, []optional[*muting]{
		{"AMuteIsKeptUntilItIsOver", keepsMutes},
		{"NoMuteIsOverByAClockThatIsNotTrusted", trustsNoClock},
		{"AMuteTakesThePlaceOfOneWithItsKey", replacesMutes},
		{"AMuteOfAJobHasItsApp", mutesJobs},
		{"WhatIsAbsurdIsNotMuted", refusesMutes},
		{"EachChangeOfAMuteIsRecorded", recordsMutes},
	})
}

// muting is a store that keeps mutes.
type muting struct {
	*env
	keeper store.MuteKeeper
}

func (e *muting) put(m store.Mute) store.Mute {
	e.Helper()
	got, err := e.keeper.PutMute(store.WithActor(e.ctx, "li.na"), m)
	e.must(err)
	return got
}

func (e *muting) keys() (keys []string) {
	e.Helper()
	list, err := e.keeper.Mutes(e.ctx)
	e.must(err)
	for _, m := range list {
		keys = append(keys, m.Key)
	}
	return keys
}

// storeNow is the time by the store's clock.
func (e *env) storeNow() time.Time {
	e.Helper()
	at, err := e.Store.Now(e.ctx)
	e.must(err)
	if at.IsZero() {
		at = time.Now()
	}
	return at
}

// soon stores what ends in a moment by put. Where storing it takes longer than that moment, the store refuses it, and
// the next one is longer.
func (e *env) soon(put func(end time.Time) error) {
	e.Helper()
	for moment := 20 * time.Millisecond; ; moment *= 4 {
		if err := put(e.storeNow().Add(moment)); err == nil || moment > 10*time.Second {
			e.must(err)
			return
		}
	}
}

func (e *muting) is(want ...string) {
	e.Helper()
	if got := e.keys(); !slices.Equal(got, want) {
		e.Fatalf("muted are %q, want %q", got, want)
	}
}

func keepsMutes(e *muting) {
	e.is()
	now := e.storeNow()
	until := now.Add(time.Hour).UTC().Truncate(time.Millisecond)
	got := e.put(store.Mute{Key: "no-executor/b 汇率", App: "b 汇率", Until: until, Note: "known <b>", By: "somebody else", At: now.Add(-time.Hour)})
	e.put(store.Mute{Key: "failing/a/x", App: "a", Until: until})
	e.put(store.Mute{Key: "node-silent//n", Until: until})
	e.is("failing/a/x", "no-executor/b 汇率", "node-silent//n")
	if got.By != "li.na" || got.At.Before(now.Add(-time.Minute)) || got.At.After(now.Add(time.Minute)) || !got.Until.Equal(until) || got.Note != "known <b>" || got.App != "b 汇率" {
		e.Errorf("muted is %+v", got)
	}
	list, err := e.keeper.Mutes(e.ctx)
	e.must(err)
	if !list[1].At.Equal(got.At) || list[1].By != got.By || list[1].Note != got.Note || !list[1].Until.Equal(until) {
		e.Errorf("read is %+v, stored %+v", list[1], got)
	}
	e.must(e.keeper.DropMute(e.ctx, "failing/a/x"))
	e.soon(func(end time.Time) error {
		_, err := e.keeper.PutMute(store.WithActor(e.ctx, "li.na"), store.Mute{Key: "soon", Until: end})
		return err
	})
	e.eventually("a mute is over by itself", func() bool { return slices.Equal(e.keys(), []string{"no-executor/b 汇率", "node-silent//n"}) })
	for _, key := range []string{"soon", "failing/a/x", "none", "", "\x00"} {
		if err := e.keeper.DropMute(e.ctx, key); !errors.Is(err, store.ErrNotFound) {
			e.Errorf("%q: %v", key, err)
		}
	}
}

// trustsNoClock: what is over by a clock that is not trusted goes on, and is forgotten by nothing.
func trustsNoClock(e *muting) {
	var soon time.Time
	e.soon(func(end time.Time) error {
		m, err := e.keeper.PutMute(store.WithActor(e.ctx, "li.na"), store.Mute{Key: "soon", Until: end})
		soon = m.Until
		return err
	})
	e.eventually("the mute is over", func() bool { return len(e.keys()) == 0 })
	doubting := store.WithTrustedTime(e.ctx, soon.Add(-time.Millisecond))
	muted := func(ctx context.Context) (keys []string) {
		e.Helper()
		list, err := e.keeper.Mutes(ctx)
		e.must(err)
		for _, m := range list {
			keys = append(keys, m.Key)
		}
		return keys
	}
	until := e.storeNow().Add(time.Hour)
	_, err := e.keeper.PutMute(store.WithActor(doubting, "li.na"), store.Mute{Key: "later", Until: until})
	e.must(err)
	want(e.env, "muted while the clock is doubted", muted(doubting), []string{"later", "soon"})
	want(e.env, "muted as of the end", muted(store.WithTrustedTime(e.ctx, soon)), []string{"later"})
	want(e.env, "muted as of a time to come", muted(store.WithTrustedTime(e.ctx, until.Add(time.Hour))), []string{"later"})
	want(e.env, "muted by the clock", muted(e.ctx), []string{"later"})
	e.must(e.keeper.DropMute(doubting, "soon"))
	want(e.env, "muted when it is ended", muted(doubting), []string{"later"})
	e.put(store.Mute{Key: "soon", Until: until})
	e.is("later", "soon")
}

func replacesMutes(e *muting) {
	until := e.storeNow().Add(time.Hour)
	e.put(store.Mute{Key: "failing/a/x", App: "a", Until: until, Note: "one"})
	e.put(store.Mute{Key: "failing/a/x", App: "a", Until: until.Add(time.Hour), Note: "two"})
	list, err := e.keeper.Mutes(e.ctx)
	e.must(err)
	if len(list) != 1 || list[0].Note != "two" || list[0].Until.Sub(until) < 59*time.Minute {
		e.Errorf("muted is %+v", list)
	}
}

func mutesJobs(e *muting) {
	j := e.newJob(func(j *store.Job) { j.App, j.Schedule = "orders", schedule.Manual() })
	until := e.storeNow().Add(time.Hour)
	if m := e.put(store.Mute{Key: store.MuteOfJob(j.ID), JobID: j.ID, App: "another", Until: until}); m.App != "orders" {
		e.Errorf("the app is %q", m.App)
	}
	if _, err := e.keeper.PutMute(e.ctx, store.Mute{Key: store.MuteOfJob(1 << 30), JobID: 1 << 30, Until: until}); !errors.Is(err, store.ErrNotFound) {
		e.Errorf("a job that is not there: %v", err)
	}
	e.is(store.MuteOfJob(j.ID))
}

func refusesMutes(e *muting) {
	now := e.storeNow()
	hour := now.Add(time.Hour)
	for _, m := range []store.Mute{
		{Until: hour}, {Key: "x"}, {Key: "x", Until: now.Add(-time.Minute)}, {Key: "x", Until: now.Add(7*24*time.Hour + time.Minute)},
		{Key: strings.Repeat("x", 256), Until: hour}, {Key: "x\x00", Until: hour}, {Key: "x", Note: strings.Repeat("n", 256), Until: hour}, {Key: "x", App: strings.Repeat("a", 65), Until: hour},
		{Key: "job/1", Until: hour}, {Key: "job/1", JobID: 2, Until: hour}, {Key: "x", JobID: 2, Until: hour}, {Key: "job/-1", JobID: -1, Until: hour}, {Key: "x\xff", Until: hour},
	} {
		if _, err := e.keeper.PutMute(e.ctx, m); err == nil || errors.Is(err, store.ErrNotFound) {
			e.Errorf("%+v: %v", m, err)
		}
	}
	e.is()
}

func recordsMutes(e *muting) {
	record, ok := e.Store.(store.ChangeRecord)
	if !ok {
		return
	}
	ctx := store.WithActor(e.ctx, "li.na")
	m := store.Mute{Key: "failing/a/x", App: "a", Until: e.storeNow().Add(time.Hour), Note: "one"}
	e.put(m)
	m.Note = "two"
	e.put(m)
	e.must(e.keeper.DropMute(ctx, m.Key))
	_, err := e.keeper.PutMute(ctx, store.Mute{Key: "x"})
	if err == nil {
		e.Errorf("one without an end is kept")
	}
	found, err := record.SearchChanges(e.ctx, store.ChangeSearch{Object: store.ObjectMute, ObjectID: m.Key, Limit: 10})
	e.must(err)
	var verbs []string
	for _, c := range found.Changes {
		verbs = append(verbs, c.Verb+" "+c.App+" "+c.Actor)
	}
	if want := []string{"unmute a li.na", "mute a li.na", "mute a li.na"}; !slices.Equal(verbs, want) {
		e.Fatalf("recorded is %q, want %q", verbs, want)
	}
	if c := found.Changes[1]; !strings.Contains(c.Before, `"one"`) || !strings.Contains(c.After, `"two"`) || strings.Contains(c.After, "Until") {
		e.Errorf("the entry says %s and %s", c.Before, c.After)
	}
}
