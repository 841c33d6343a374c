package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// recordMutants break the record of changes.
func recordMutants() []mutant {
	bend := func(name string, change func(*bentRecord), cases ...string) mutant {
		for i := range cases {
			cases[i] = "Record/" + cases[i]
		}
		return mutant{name, func(s xxljob.Store) xxljob.Store {
			b := &bentRecord{Store: s, ChangeRecord: s.(xxljob.ChangeRecord)}
			change(b)
			return b
		}, cases}
	}
	search := func(name string, change func(*xxljob.ChangeSearch), cases ...string) mutant {
		return bend(name, func(b *bentRecord) { b.search = change }, cases...)
	}
	found := func(name string, change func(*xxljob.ChangesFound), cases ...string) mutant {
		return bend(name, func(b *bentRecord) { b.found = change }, cases...)
	}
	entry := func(name string, change func(*xxljob.Change), cases ...string) mutant {
		return found(name, func(f *xxljob.ChangesFound) {
			for i := range f.Changes {
				change(&f.Changes[i])
			}
		}, cases...)
	}
	without := func(name string, missing func(*xxljob.Change) bool, cases ...string) mutant {
		return found(name, func(f *xxljob.ChangesFound) {
			f.Changes = slices.DeleteFunc(f.Changes, func(c xxljob.Change) bool { return missing(&c) })
		}, cases...)
	}
	ghost := func(name string, of string, cases ...string) mutant {
		return bend(name, func(b *bentRecord) { b.ghost = of }, cases...)
	}
	return []mutant{
		search("ChangesOfAnyActor", func(q *xxljob.ChangeSearch) { q.Actor = "" }, "SearchByEachField"),
		search("ChangesOfAnyVerb", func(q *xxljob.ChangeSearch) { q.Verb = "" }, "SearchByEachField"),
		search("ChangesOfAnyObject", func(q *xxljob.ChangeSearch) { q.ObjectID = "" }, "SearchByEachField"),
		search("ChangesOfAnyKind", func(q *xxljob.ChangeSearch) {
			if q.ObjectID == "" {
				q.Object = ""
			}
		}, "SearchByEachField"),
		search("ChangesOfAnyApp", func(q *xxljob.ChangeSearch) { q.Apps = nil }, "SearchByEachField"),
		search("ChangesOfTheFirstApp", func(q *xxljob.ChangeSearch) { q.Apps = q.Apps[:min(len(q.Apps), 1)] }, "SearchByEachField"),
		search("ChangesOfAnyJob", func(q *xxljob.ChangeSearch) { q.JobID = 0 }, "SearchByEachField"),
		search("ChangesForgetSince", func(q *xxljob.ChangeSearch) { q.Since = time.Time{} }, "SearchByTime", "SearchRefusesWhatIsAbsurd"),
		search("ChangesForgetUntil", func(q *xxljob.ChangeSearch) { q.Until = time.Time{} }, "SearchByTime", "SearchRefusesWhatIsAbsurd"),
		search("ChangesUntilIsIncluded", func(q *xxljob.ChangeSearch) {
			if !q.Until.IsZero() {
				q.Until = q.Until.Add(time.Millisecond)
			}
		}, "SearchByTime"),
		search("ChangesSinceIsCut", func(q *xxljob.ChangeSearch) { q.Since = q.Since.Truncate(time.Millisecond) }, "SearchByTime"),
		search("ChangesForgetWhereTheyWere", func(q *xxljob.ChangeSearch) { q.Before = 0 }, "SearchGoesOnWhereItStopped"),
		search("ChangesLookAtAll", func(q *xxljob.ChangeSearch) { q.Examine = 0 }, "SearchLooksAtSoManyEntries"),
		search("ChangesReturnAll", func(q *xxljob.ChangeSearch) { q.Limit = 0 }, "SearchLooksAtSoManyEntries"),
		search("ChangesCheckNothing", func(q *xxljob.ChangeSearch) { *q = xxljob.ChangeSearch{} }, "SearchRefusesWhatIsAbsurd"),
		found("ChangesOldestFirst", func(f *xxljob.ChangesFound) { slices.Reverse(f.Changes) }, "SearchFindsTheNewestFirst"),
		found("ChangesAreAlwaysThrough", func(f *xxljob.ChangesFound) { f.SearchedTo = 1 }, "SearchGoesOnWhereItStopped", "SearchLooksAtSoManyEntries"),
		found("ChangesGoOnTooFar", func(f *xxljob.ChangesFound) { f.SearchedTo = max(f.SearchedTo-1, 1) }, "SearchGoesOnWhereItStopped"),
		entry("ChangesWithoutClient", func(c *xxljob.Change) { c.Client = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfListsSayWhatChanged", "EntriesOfRuns", "EntriesOfKills", "EntriesOfApps", "EntriesOfOthers", "EntriesAreBounded"),
		entry("ChangesWithoutRequest", func(c *xxljob.Change) { c.RequestID = "" }, "EntriesOfAJobSayWhatChanged", "EntriesAreBounded"),
		entry("ChangesWithoutBefore", func(c *xxljob.Change) { c.Before = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfKills", "EntriesOfApps", "EntriesOfTheScheduler", "OneForEachChange"),
		entry("ChangesWithoutAfter", func(c *xxljob.Change) { c.After = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfListsSayWhatChanged", "EntriesOfRuns", "EntriesOfApps"),
		entry("ChangesOfNoObject", func(c *xxljob.Change) { c.ObjectID = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfRuns", "EntriesOfApps", "EntriesOfOthers"),
		entry("ChangesOfNoApp", func(c *xxljob.Change) { c.App = "" }, "EntriesOfAJobSayWhatChanged", "EntriesOfRuns", "EntriesOfApps", "EntriesOfTheScheduler"),
		entry("StopsOfNobody", func(c *xxljob.Change) { c.Actor = "" }, "EntriesOfTheScheduler"),
		entry("LongChanges", func(c *xxljob.Change) {
			c.After = strings.Replace(c.After, "... (", strings.Repeat("é", 9000)+"... (", 1)
		}, "EntriesAreBounded"),
		entry("ChangesWithControlCharacters", func(c *xxljob.Change) { c.Client += "\x1b" }, "EntriesAreBounded"),
		without("NoChangesOfLists", func(c *xxljob.Change) bool { return c.Verb == "add" }, "EntriesOfListsSayWhatChanged"),
		without("NoTriggers", func(c *xxljob.Change) bool { return c.Verb == "trigger" }, "EntriesOfRuns", "OneForEachChange"),
		without("NoneAgain", func(c *xxljob.Change) bool { return c.Verb == "again" }, "EntriesOfRuns"),
		without("NoKills", func(c *xxljob.Change) bool { return c.Verb == "kill" }, "EntriesOfKills"),
		without("NoApps", func(c *xxljob.Change) bool { return c.Object == store.ObjectApp }, "EntriesOfApps"),
		without("NoStops", func(c *xxljob.Change) bool { return c.Verb == "stop" }, "EntriesOfTheScheduler"),
		ghost("EditsThatFailAreRecorded", "EditJob", "NoneOfWhatIsRefused"),
		ghost("TriggersOfNobodyAreRecorded", "AddRun", "RunsOfNobodyHaveNone", "EntriesOfRuns"),
		ghost("KillsOfWhatHasEndedAreRecorded", "Kill", "EntriesOfKills", "RunsOfNobodyHaveNone"),
		ghost("GroupsThatAreThereAreRecorded", "EnsureGroup", "EntriesOfApps"),
		bend("OthersAreNotWritten", func(b *bentRecord) { b.deaf = true }, "EntriesOfOthers"),
		bend("OthersAreOfNoJob", func(b *bentRecord) { b.hides = true }, "EntriesOfOthersAboutAJob"),
		entry("ChangesOfNoJob", func(c *xxljob.Change) { c.JobID = 0 }, "EntriesOfOthersAboutAJob"),
		bend("OthersAreNotChecked", func(b *bentRecord) { b.lenient = true }, "EntriesOfOthersAreChecked"),
		bend("OneVersionForAll", func(b *bentRecord) { b.version = 1 }, "EachVersionCanBeRestored", "WhatIsNotRecordedIsNotFound"),
		bend("ChangesStay", func(b *bentRecord) { b.keeps = true }, "OldEntriesAreDropped"),
		bend("ChangesGoTooSoon", func(b *bentRecord) { b.early = time.Hour }, "OldEntriesAreDropped"),
	}
}

// bentRecord changes questions and answers, and writes what it should not.
type bentRecord struct {
	xxljob.Store
	xxljob.ChangeRecord
	search                      func(*xxljob.ChangeSearch)
	found                       func(*xxljob.ChangesFound)
	ghost                       string
	deaf, lenient, keeps, hides bool
	version                     int64
	early                       time.Duration
}

func (b *bentRecord) haunt(of string) {
	if b.ghost == of {
		_, _ = b.ChangeRecord.RecordChange(context.Background(), xxljob.Change{Verb: "ghost", Object: "ghost"})
	}
}

func (b *bentRecord) SearchChanges(ctx context.Context, q xxljob.ChangeSearch) (xxljob.ChangesFound, error) {
	if b.search != nil {
		b.search(&q)
	}
	f, err := b.ChangeRecord.SearchChanges(ctx, q)
	if b.found != nil {
		b.found(&f)
	}
	return f, err
}

func (b *bentRecord) EditJob(ctx context.Context, id int64, edit xxljob.Edit) (xxljob.Job, error) {
	job, err := b.Store.EditJob(ctx, id, edit)
	if err != nil {
		b.haunt("EditJob")
	}
	return job, err
}

func (b *bentRecord) AddRun(ctx context.Context, job int64, t xxljob.Trigger) (xxljob.Run, error) {
	b.haunt("AddRun")
	return b.Store.AddRun(ctx, job, t)
}

func (b *bentRecord) Kill(ctx context.Context, run int64, reason string) (xxljob.Run, error) {
	b.haunt("Kill")
	return b.Store.Kill(ctx, run, reason)
}

func (b *bentRecord) EnsureGroup(ctx context.Context, app string) error {
	b.haunt("EnsureGroup")
	return b.Store.EnsureGroup(ctx, app)
}

func (b *bentRecord) RecordChange(ctx context.Context, c xxljob.Change) (xxljob.Change, error) {
	if b.deaf {
		return c, nil
	}
	got, err := b.ChangeRecord.RecordChange(ctx, c)
	if b.lenient && len(xxljob.FieldErrors(err)) > 0 {
		err = errors.New("it is not written")
	}
	return got, err
}

func (b *bentRecord) JobAt(ctx context.Context, job, version int64) (xxljob.Job, error) {
	if b.version != 0 {
		version = b.version
	}
	return b.ChangeRecord.JobAt(ctx, job, version)
}

func (b *bentRecord) DropChanges(ctx context.Context, before time.Time) error {
	if b.keeps {
		return nil
	}
	return b.ChangeRecord.DropChanges(ctx, before.Add(b.early))
}

func (b *bentRecord) Changes(ctx context.Context, job int64, limit int) ([]xxljob.Change, error) {
	list, err := b.Store.Changes(ctx, job, limit)
	if b.hides {
		list = slices.DeleteFunc(list, func(c xxljob.Change) bool { return c.Verb == "viewed" })
	}
	return list, err
}
