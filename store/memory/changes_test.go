package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
