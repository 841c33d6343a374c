package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// filled writes entries of several kinds, and returns all, newest first.
func (e *changeLog) filled() []store.Change {
	e.Helper()
	for i := range 30 {
		c := store.Change{Verb: []string{"login", "update"}[i%2], Object: []string{"user", "token", "thing"}[i%3], ObjectID: fmt.Sprint("o", i%5), App: []string{"", "a", "b", "c"}[i%4]}
		_, err := e.record.RecordChange(store.WithActor(e.ctx, []string{"ann", "bob"}[i/15]), c)
		e.must(err)
	}
	for range 3 {
		job := e.newJob()
		e.edit(job.ID, func(j *store.Job) { j.Param = "x" })
		_, err := e.AddRun(store.WithActor(e.ctx, "ann"), job.ID, store.Trigger{})
		e.must(err)
	}
	all := e.search(store.ChangeSearch{}).Changes
	if len(all) != 39 {
		e.Fatalf("%d entries, want 39", len(all))
	}
	return all
}

func changesNewest(e *changeLog) {
	all := e.filled()
	for i := range all[1:] {
		e.check(all[i].ID > all[i+1].ID, "entry %d is before %d", all[i].ID, all[i+1].ID)
	}
	want(e.env, "SearchedTo", e.search(store.ChangeSearch{}).SearchedTo, int64(1))
	brief := slices.Clone(all)
	for i := range brief {
		brief[i].Before, brief[i].After = "", ""
	}
	want(e.env, "without texts", e.search(store.ChangeSearch{Brief: true}).Changes, brief)
	want(e.env, "those of a job", e.mustChanges(all[0].JobID), slices.DeleteFunc(slices.Clone(all[:3]), func(c store.Change) bool { return c.Object != store.ObjectJob }))
}

// wantChosen checks what a search finds of all entries.
func (e *changeLog) wantChosen(what string, all []store.Change, q store.ChangeSearch, chosen func(*store.Change) bool) {
	e.Helper()
	var right []store.Change
	for i := range all {
		if chosen(&all[i]) {
			right = append(right, all[i])
		}
	}
	found := e.search(q)
	want(e.env, "found by "+what, found.Changes, right)
	want(e.env, "SearchedTo by "+what, found.SearchedTo, int64(1))
}

func changesByField(e *changeLog) {
	all := e.filled()
	job := all[0].JobID
	id := strconv.FormatInt(job, 10)
	run := all[0].ObjectID
	for what, c := range map[string]struct {
		q      store.ChangeSearch
		chosen func(*store.Change) bool
	}{
		"actor":          {store.ChangeSearch{Actor: "bob"}, func(c *store.Change) bool { return c.Actor == "bob" }},
		"verb":           {store.ChangeSearch{Verb: "update"}, func(c *store.Change) bool { return c.Verb == "update" }},
		"kind":           {store.ChangeSearch{Object: "token"}, func(c *store.Change) bool { return c.Object == "token" }},
		"object":         {store.ChangeSearch{Object: "token", ObjectID: "o1"}, func(c *store.Change) bool { return c.Object == "token" && c.ObjectID == "o1" }},
		"a job":          {store.ChangeSearch{Object: "job", ObjectID: id}, func(c *store.Change) bool { return c.Object == "job" && c.JobID == job }},
		"a job and runs": {store.ChangeSearch{JobID: job}, func(c *store.Change) bool { return c.JobID == job }},
		"a run":          {store.ChangeSearch{Object: "run", ObjectID: run}, func(c *store.Change) bool { return c.ObjectID == run }},
		"jobs":           {store.ChangeSearch{Object: "job"}, func(c *store.Change) bool { return c.Object == "job" }},
		"app":            {store.ChangeSearch{Apps: []string{"a"}}, func(c *store.Change) bool { return c.App == "a" }},
		"apps":           {store.ChangeSearch{Apps: []string{"a", "app"}}, func(c *store.Change) bool { return c.App == "a" || c.App == "app" }},
		"all of them": {store.ChangeSearch{Actor: "ann", Verb: "login", Object: "user", ObjectID: "o1", Apps: []string{"c", "b"}}, func(c *store.Change) bool {
			return c.Actor == "ann" && c.Verb == "login" && c.Object == "user" && c.ObjectID == "o1" && (c.App == "b" || c.App == "c")
		}},
		"actor and app":      {store.ChangeSearch{Actor: "ann", Apps: []string{"app"}}, func(c *store.Change) bool { return c.Actor == "ann" && c.App == "app" }},
		"verb and kind":      {store.ChangeSearch{Verb: "update", Object: "thing"}, func(c *store.Change) bool { return c.Verb == "update" && c.Object == "thing" }},
		"a job and its verb": {store.ChangeSearch{JobID: job, Verb: "trigger"}, func(c *store.Change) bool { return c.JobID == job && c.Verb == "trigger" }},
		"nobody":             {store.ChangeSearch{Actor: "nobody"}, func(*store.Change) bool { return false }},
		"no number":          {store.ChangeSearch{Object: "job", ObjectID: "0x7"}, func(*store.Change) bool { return false }},
		"zeros before":       {store.ChangeSearch{Object: "job", ObjectID: "0" + id}, func(*store.Change) bool { return false }},
		"a job too far":      {store.ChangeSearch{JobID: 1 << 40}, func(*store.Change) bool { return false }},
	} {
		e.wantChosen(what, all, c.q, c.chosen)
	}
}

func changesByTime(e *changeLog) {
	for range 3 {
		e.filled1()
		start := e.search(store.ChangeSearch{Limit: 1}).Changes[0].At
		e.eventually("the store's clock moves on", func() bool { e.filled1(); return e.search(store.ChangeSearch{Limit: 1}).Changes[0].At.After(start) })
	}
	all := e.search(store.ChangeSearch{Limit: 1000}).Changes
	since, until := all[len(all)*2/3].At, all[len(all)/3].At
	e.wantChosen("Since", all, store.ChangeSearch{Since: since, Limit: 1000}, func(c *store.Change) bool { return !c.At.Before(since) })
	e.wantChosen("Until", all, store.ChangeSearch{Until: until, Limit: 1000}, func(c *store.Change) bool { return c.At.Before(until) })
	e.wantChosen("both", all, store.ChangeSearch{Since: since, Until: until, Limit: 1000}, func(c *store.Change) bool { return !c.At.Before(since) && c.At.Before(until) })
	e.wantChosen("a time within a millisecond", all, store.ChangeSearch{Since: since.Add(time.Microsecond), Until: until.Add(time.Microsecond), Limit: 1000},
		func(c *store.Change) bool { return c.At.After(since) && !c.At.After(until) })
	for _, q := range []store.ChangeSearch{{Since: until, Until: until}, {Since: until, Until: since}, {Since: all[0].At.AddDate(300, 0, 0)}, {Until: time.Unix(0, 0)}} {
		e.wantChosen("a time without any", all, q, func(*store.Change) bool { return false })
	}
}

// filled1 writes one entry.
func (e *changeLog) filled1() {
	e.Helper()
	_, err := e.record.RecordChange(e.ctx, store.Change{Verb: "v", Object: "o"})
	e.must(err)
}

func changesPages(e *changeLog) {
	all := e.filled()
	for what, q := range map[string]store.ChangeSearch{
		"all": {Limit: 7}, "of an actor": {Actor: "ann", Limit: 4}, "of a verb of an actor": {Actor: "ann", Verb: "login", Limit: 2},
		"few at a time": {Actor: "bob", Apps: []string{"a", "b"}, Examine: 3}, "one at a time": {Examine: 1, Limit: 1},
	} {
		whole := q
		whole.Limit, whole.Examine = 0, 0
		right := e.search(whole).Changes
		var got []store.Change
		pages := 0
		for q.Before = 0; q.Before != 1; pages++ {
			found := e.search(q)
			got = append(got, found.Changes...)
			e.check(q.Before == 0 || found.SearchedTo < q.Before, "%s: SearchedTo %d from %d", what, found.SearchedTo, q.Before)
			if q.Before = found.SearchedTo; pages > 2*len(all) {
				e.Fatalf("%s: %d pages", what, pages)
			}
		}
		want(e.env, "page by page: "+what, got, right)
	}
}

func changesExamined(e *changeLog) {
	all := e.filled()
	found := e.search(store.ChangeSearch{Examine: 5})
	want(e.env, "of five entries", found, store.ChangesFound{Changes: all[:5], SearchedTo: all[4].ID})
	found = e.search(store.ChangeSearch{Actor: "bob", Verb: "nothing", Examine: 2})
	e.check(len(found.Changes) == 0 && found.SearchedTo > 1, "two entries looked at: %+v", found)
	found = e.search(store.ChangeSearch{Limit: 3})
	want(e.env, "of three entries", found, store.ChangesFound{Changes: all[:3], SearchedTo: all[2].ID})
}

func changesAbsurd(e *changeLog) {
	long := strings.Repeat("x", 10_000)
	for field, q := range map[string]store.ChangeSearch{
		"Actor": {Actor: long}, "Verb": {Verb: long}, "Object": {Object: long}, "ObjectID": {Object: "o", ObjectID: long},
		"Apps": {Apps: slices.Repeat([]string{"a"}, 1001)}, "JobID": {JobID: -1}, "Examine": {Examine: 200_001}, "Limit": {Limit: 1001},
	} {
		_, err := e.record.SearchChanges(e.ctx, q)
		e.wantFault(field, err)
	}
	for _, at := range absurdTimes() {
		for field, q := range map[string]store.ChangeSearch{"Since": {Since: at}, "Until": {Until: at}} {
			_, err := e.record.SearchChanges(e.ctx, q)
			e.wantFault(field, err)
		}
	}
	_, err := e.record.SearchChanges(e.ctx, store.ChangeSearch{ObjectID: "7"})
	e.check(len(store.FieldErrors(err)) == 1, "an ObjectID without Object: %v", err)
}
