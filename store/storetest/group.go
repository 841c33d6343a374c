package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

func groupCases() []testCase {
	return []testCase{
		{"SaveInsertsAndReplaces", saveGroup},
		{"EnsureInsertsAnAutomaticGroup", ensureGroup},
		{"EnsureWritesNothingWhereThereIsOne", ensureExisting},
		{"RemoveRefusesAGroupWithJobs", removeGroupInUse},
		{"NotFound", groupNotFound},
		{"GroupsInOrderOfApp", groupsInOrder},
	}
}

func (e *env) mustGroup(app string) store.Group {
	e.Helper()
	g, err := e.Group(e.ctx, app)
	e.must(err)
	return g
}

func saveGroup(e *env) {
	given := store.Group{App: "app", Title: "Title — 题", Manual: true, Addresses: []string{"http://b", "http://a"}}
	for range 2 {
		e.must(e.SaveGroup(e.ctx, given))
		got := e.mustGroup("app")
		e.check(!got.Updated.IsZero(), "Updated is not set")
		given.Updated = got.Updated
		want(e, "Group", got, given)
		given = store.Group{App: "app", Title: "other"}
	}
	groups, err := e.Groups(e.ctx)
	e.must(err)
	want(e, "number of groups", len(groups), 1)
}

func ensureGroup(e *env) {
	e.must(e.EnsureGroup(e.ctx, "app"))
	got := e.mustGroup("app")
	want(e, "App", got.App, "app")
	e.check(!got.Manual && len(got.Addresses) == 0, "EnsureGroup made %+v, want an automatic group", got)
}

func ensureExisting(e *env) {
	e.must(e.SaveGroup(e.ctx, store.Group{App: "app", Title: "mine", Manual: true, Addresses: []string{"http://a"}}))
	before := e.mustGroup("app")
	e.must(e.EnsureGroup(e.ctx, "app"))
	want(e, "a manual group after EnsureGroup", e.mustGroup("app"), before)
}

func removeGroupInUse(e *env) {
	e.must(e.EnsureGroup(e.ctx, "app"))
	job := e.newJob()
	e.wantErr("RemoveGroup with a job", e.RemoveGroup(e.ctx, "app"), store.ErrGroupInUse)
	e.mustGroup("app")
	e.must(e.RemoveJob(e.ctx, job.ID))
	e.must(e.RemoveGroup(e.ctx, "app"))
	_, err := e.Group(e.ctx, "app")
	e.wantErr("Group after its removal", err, store.ErrNotFound)
}

func groupNotFound(e *env) {
	_, err := e.Group(e.ctx, "none")
	e.wantErr("Group", err, store.ErrNotFound)
	e.wantErr("RemoveGroup", e.RemoveGroup(e.ctx, "none"), store.ErrNotFound)
	for _, never := range []string{"a\x00b", "\xff"} { // nothing stored is that
		_, err := e.Group(e.ctx, never)
		e.wantErr("Group of a name that cannot be", err, store.ErrNotFound)
		e.wantErr("RemoveGroup of a name that cannot be", e.RemoveGroup(e.ctx, never), store.ErrNotFound)
		regs, err := e.Addresses(e.ctx, never, time.Hour)
		e.must(err)
		want(e, "addresses of a name that cannot be", len(regs), 0)
	}
}

func groupsInOrder(e *env) {
	groups, err := e.Groups(e.ctx)
	e.must(err)
	want(e, "groups of an empty store", len(groups), 0)
	for _, app := range []string{"b", "a-b", "B", "a"} {
		e.must(e.EnsureGroup(e.ctx, app))
	}
	groups, err = e.Groups(e.ctx)
	e.must(err)
	var apps []string
	for _, g := range groups {
		apps = append(apps, g.App)
	}
	want(e, "apps", apps, []string{"B", "a", "a-b", "b"})
}
