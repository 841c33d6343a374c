package mutant

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// recordMutants break the record of changes.
func recordMutants() []Mutant {
	bend := func(name string, change func(*bentRecord), cases ...string) Mutant {
		for i := range cases {
			cases[i] = "Record/" + cases[i]
		}
		return Mutant{name, func(s whole) any {
			b := &bentRecord{st: s}
			change(b)
			return b
		}, cases}
	}
	search := func(name string, change func(*store.ChangeSearch), cases ...string) Mutant {
		return bend(name, func(b *bentRecord) { b.search = change }, cases...)
	}
	found := func(name string, change func(*store.ChangesFound), cases ...string) Mutant {
		return bend(name, func(b *bentRecord) { b.found = change }, cases...)
	}
	entry := func(name string, change func(*store.Change), cases ...string) Mutant {
		return found(name, func(f *store.ChangesFound) {
			for i := range f.Changes {
				change(&f.Changes[i])
			}
		}, cases...)
	}
	without := func(name string, missing func(*store.Change) bool, cases ...string) Mutant {
		return found(name, func(f *store.ChangesFound) {
			f.Changes = slices.DeleteFunc(f.Changes, func(c store.Change) bool { return missing(&c) })
		}, cases...)
	}
	ghost := func(name string, of string, cases ...string) Mutant {
		return bend(name, func(b *bentRecord) { b.ghost = of }, cases...)
	}
	return []Mutant{
		search("ChangesOfAnyActor", func(q *store.ChangeSearch) { q.Actor = "" }, "SearchByEachField"),
		search("ChangesOfAnyVerb", func(q *store.ChangeSearch) { q.Verb = "" }, "SearchByEachField"),
		search("ChangesOfAnyObject", func(q *store.ChangeSearch) { q.ObjectID = "" }, "SearchByEachField"),
		search("ChangesOfAnyKind", func(q *store.ChangeSearch) {
			if q.ObjectID == "" {
				q.Object = ""
			}
		}, "SearchByEachField"),
		search("ChangesOfAnyApp", func(q *store.ChangeSearch) { q.Apps = nil }, "SearchByEachField"),
		search("ChangesOfTheFirstApp", func(q *store.ChangeSearch) { q.Apps = q.Apps[:min(len(q.Apps), 1)] }, "SearchByEachField"),
		search("ChangesOfAnyJob", func(q *store.ChangeSearch) { q.JobID = 0 }, "SearchByEachField"),
		search("ChangesForgetSince", func(q *store.ChangeSearch) { q.Since = time.Time{} }, "SearchByTime", "SearchRefusesWhatIsAbsurd"),
		search("ChangesForgetUntil", func(q *store.ChangeSearch) { q.Until = time.Time{} }, "SearchByTime", "SearchRefusesWhatIsAbsurd"),
		search("ChangesUntilIsIncluded", func(q *store.ChangeSearch) {
			if !q.Until.IsZero() {
				q.Until = q.Until.Add(time.Millisecond)
			}
		}, "SearchByTime"),
		search("ChangesSinceIsCut", func(q *store.ChangeSearch) { q.Since = q.Since.Truncate(time.Millisecond) }, "SearchByTime"),
		search("ChangesForgetWhereTheyWere", func(q *store.ChangeSearch) { q.Before = 0 }, "SearchGoesOnWhereItStopped"),
		search("ChangesLookAtAll", func(q *store.ChangeSearch) { q.Examine = 0 }, "SearchLooksAtSoManyEntries"),
		search("ChangesReturnAll", func(q *store.ChangeSearch) { q.Limit = 0 }, "SearchLooksAtSoManyEntries"),
		search("ChangesCheckNothing", func(q *store.ChangeSearch) { *q = store.ChangeSearch{} }, "SearchRefusesWhatIsAbsurd"),
		found("ChangesOldestFirst", func(f *store.ChangesFound) { slices.Reverse(f.Changes) }, "SearchFindsTheNewestFirst"),
		found("ChangesAreAlwaysThrough", func(f *store.ChangesFound) { f.SearchedTo = 1 }, "SearchGoesOnWhereItStopped", "SearchLooksAtSoManyEntries"),
		found("ChangesGoOnTooFar", func(f *store.ChangesFound) { f.SearchedTo = max(f.SearchedTo-1, 1) }, "SearchGoesOnWhereItStopped"),
		entry("ChangesWithoutClient", func(c *store.Change) { c.Client = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfListsSayWhatChanged", "EntriesOfRuns", "EntriesOfKills", "EntriesOfApps", "EntriesOfOthers", "EntriesAreBounded"),
		entry("ChangesWithoutRequest", func(c *store.Change) { c.RequestID = "" }, "EntriesOfAJobSayWhatChanged", "EntriesAreBounded"),
		entry("ChangesWithoutBefore", func(c *store.Change) { c.Before = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfKills", "EntriesOfApps", "EntriesOfTheScheduler", "OneForEachChange"),
		entry("ChangesWithoutAfter", func(c *store.Change) { c.After = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfListsSayWhatChanged", "EntriesOfRuns", "EntriesOfApps"),
		entry("ChangesOfNoObject", func(c *store.Change) { c.ObjectID = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfRuns", "EntriesOfApps", "EntriesOfOthers"),
		entry("ChangesOfNoApp", func(c *store.Change) { c.App = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfRuns", "EntriesOfApps", "EntriesOfTheScheduler"),
		entry("StopsOfNobody", func(c *store.Change) { c.Actor = "" }, "EntriesOfTheScheduler"),
		entry("LongChanges", func(c *store.Change) {
			c.After = strings.Replace(c.After, "... (", strings.Repeat("é", 9000)+"... (", 1)
		}, "EntriesAreBounded"),
		entry("ChangesWithControlCharacters", func(c *store.Change) { c.Client += "\x1b" }, "EntriesAreBounded"),
		without("NoChangesOfLists", func(c *store.Change) bool { return c.Verb == "add" }, "EntriesOfListsSayWhatChanged"),
		without("NoTriggers", func(c *store.Change) bool { return c.Verb == "trigger" }, "EntriesOfRuns", "OneForEachChange"),
		without("NoneAgain", func(c *store.Change) bool { return c.Verb == "again" }, "EntriesOfRuns"),
		without("NoKills", func(c *store.Change) bool { return c.Verb == "kill" }, "EntriesOfKills"),
		without("NoApps", func(c *store.Change) bool { return c.Object == store.ObjectApp }, "EntriesOfApps"),
		without("NoStops", func(c *store.Change) bool { return c.Verb == "stop" }, "EntriesOfTheScheduler"),
		ghost("EditsThatFailAreRecorded", "EditJob", "NoneOfWhatIsRefused"),
		ghost("TriggersOfNobodyAreRecorded", "AddRun", "RunsOfNobodyHaveNone", "EntriesOfRuns"),
		ghost("KillsOfWhatHasEndedAreRecorded", "Kill", "EntriesOfKills", "RunsOfNobodyHaveNone"),
		ghost("GroupsThatAreThereAreRecorded", "EnsureGroup", "EntriesOfApps"),
		bend("OthersAreNotWritten", func(b *bentRecord) { b.deaf = true }, "EntriesOfOthers"),
		bend("OthersAreOfNoJob", func(b *bentRecord) { b.hides = true }, "EntriesOfOthersAboutAJob"),
		entry("ChangesOfNoJob", func(c *store.Change) { c.JobID = 0 }, "EntriesOfOthersAboutAJob"),
		bend("OthersAreNotChecked", func(b *bentRecord) { b.lenient = true }, "EntriesOfOthersAreChecked"),
		bend("OneVersionForAll", func(b *bentRecord) { b.version = 1 }, "EachVersionCanBeRestored", "WhatIsNotRecordedIsNotFound"),
		bend("ChangesStay", func(b *bentRecord) { b.keeps = true }, "OldEntriesAreDropped"),
		bend("ChangesGoTooSoon", func(b *bentRecord) { b.early = time.Hour }, "OldEntriesAreDropped"),
	}
}

// bentRecord changes questions and answers, and writes what it should not.
type bentRecord struct {
	st                          whole
	search                      func(*store.ChangeSearch)
	found                       func(*store.ChangesFound)
	ghost                       string
	deaf, lenient, keeps, hides bool
	version                     int64
	early                       time.Duration
}

func (b *bentRecord) haunt(of string) {
	if b.ghost == of {
		_, _ = b.st.RecordChange(context.Background(), store.Change{Verb: "ghost", Object: "ghost"})
	}
}

func (b *bentRecord) SearchChanges(ctx context.Context, q store.ChangeSearch) (store.ChangesFound, error) {
	if b.search != nil {
		b.search(&q)
	}
	f, err := b.st.SearchChanges(ctx, q)
	if b.found != nil {
		b.found(&f)
	}
	return f, err
}

func (b *bentRecord) EditJob(ctx context.Context, id int64, edit store.Edit) (store.Job, error) {
	job, err := b.st.EditJob(ctx, id, edit)
	if err != nil {
		b.haunt("EditJob")
	}
	return job, err
}

func (b *bentRecord) AddRun(ctx context.Context, job int64, t store.Trigger) (store.Run, error) {
	b.haunt("AddRun")
	return b.st.AddRun(ctx, job, t)
}

func (b *bentRecord) Kill(ctx context.Context, run int64, reason string) (store.Run, error) {
	b.haunt("Kill")
	return b.st.Kill(ctx, run, reason)
}

func (b *bentRecord) EnsureGroup(ctx context.Context, app string) error {
	b.haunt("EnsureGroup")
	return b.st.EnsureGroup(ctx, app)
}

func (b *bentRecord) RecordChange(ctx context.Context, c store.Change) (store.Change, error) {
	if b.deaf {
		return c, nil
	}
	got, err := b.st.RecordChange(ctx, c)
	if b.lenient && len(store.FieldErrors(err)) > 0 {
		err = errors.New("it is not written")
	}
	return got, err
}

func (b *bentRecord) JobAt(ctx context.Context, job, version int64) (store.Job, error) {
	if b.version != 0 {
		version = b.version
	}
	return b.st.JobAt(ctx, job, version)
}

func (b *bentRecord) DropChanges(ctx context.Context, before time.Time) error {
	if b.keeps {
		return nil
	}
	return b.st.DropChanges(ctx, before.Add(b.early))
}

func (b *bentRecord) Changes(ctx context.Context, job int64, limit int) ([]store.Change, error) {
	list, err := b.st.Changes(ctx, job, limit)
	if b.hides {
		list = slices.DeleteFunc(list, func(c store.Change) bool { return c.Verb == "viewed" })
	}
	return list, err
}
