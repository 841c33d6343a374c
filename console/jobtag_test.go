package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
)

// tagged adds a job with tags.
func (x *site) tagged(app, name string, tags ...string) xxljob.Job {
	x.Helper()
	return must1(x.s.AddJob(x.Context(), xxljob.Job{App: app, Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Tags: tags, Param: "param of " + name}))
}

// tags are those that a job has now.
func (x *site) tags(j xxljob.Job) string {
	x.Helper()
	return strings.Join(must1(x.store.Job(x.Context(), j.ID)).Tags, " ")
}

// TestBulkTag: tags are added and taken off by one edit a job, of the jobs that the user may
// edit, and nothing else of them is changed.
func TestBulkTag(t *testing.T) { onBothStores(t, testBulkTag) }

func testBulkTag(t *testing.T) {
	x := newSite(t)
	x.admin()
	one, two, same := x.tagged("orders", "one", "old", "kept"), x.tagged("orders", "two"), x.tagged("orders", "same", "new", "a,b")
	seen, hidden := x.tagged("audit", "only seen", "seen-tag"), x.tagged("billing", "hidden one", "hidden-tag")
	must(t, x.s.StopJob(t.Context(), two.ID))
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor, "audit": console.Operator}})
	var ids []string
	for _, j := range []xxljob.Job{one, two, same, seen, hidden, one} {
		ids = append(ids, itoa(j.ID))
	}
	ids = append(ids, "4711")

	ann.post("jobs/bulk", url.Values{"do": {"tag"}, "id": ids, "back": {"jobs?app=orders"}}).is(200).has("Tags of 6 jobs", "old · 1", "a,b · 1", "one", "only seen", "seen-tag").lacks("hidden one", "hidden-tag", `value="seen-tag"`)
	form := ann.filled("main")
	if form.Get("back") != "jobs?app=orders" || len(form["id"]) != 6 {
		t.Errorf("the form has %v", form)
	}
	if x.tags(one) != "old kept" {
		t.Errorf("something was done already: %s", x.tags(one))
	}
	form["add"], form["off"] = []string{" new , new,, other "}, []string{"old", "a,b"}
	ann.post("jobs/bulk", form).is(200).has("Done for 3 of 6.", "one", "only seen", "needs the role “editor”", "There is nothing here.").lacks("hidden one", "hidden-tag")
	for j, want := range map[*xxljob.Job]string{&one: "kept new other", &two: "new other", &same: "new other", &seen: "seen-tag", &hidden: "hidden-tag"} {
		if got := x.tags(*j); got != want {
			t.Errorf("%s has the tags %q, want %q", j.Name, got, want)
		}
	}
	now := must1(x.store.Job(t.Context(), two.ID))
	if !now.Stopped || now.Param != "param of two" || now.Schedule != two.Schedule || now.Name != "two" {
		t.Errorf("more than the tags has changed: %+v", now)
	}
	entries := must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "ann", Verb: "update"})).Changes
	if len(entries) != 3 {
		t.Fatalf("%d entries, want 3", len(entries))
	}
	for _, c := range entries {
		if !strings.Contains(c.After, `"Tags"`) || strings.Contains(c.After, "Param") || c.App != "orders" {
			t.Errorf("an entry says %s, %s", c.Before, c.After)
		}
	}

	// Again: all is so already, and nothing is changed or recorded.
	ann.post("jobs/bulk", with(form, "off", "old")).is(200).has("Done for 3 of 6.", "unchanged")
	if n := len(must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "ann", Verb: "update"})).Changes); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
}

// TestBulkTagFaults: what is no tag is said at its field, with all that was typed, and nothing is
// done; a job that would have too many says so, and others are done all the same.
func TestBulkTagFaults(t *testing.T) { onBothStores(t, testBulkTagFaults) }

func testBulkTagFaults(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprint("t", i))
	}
	full, empty := x.tagged("orders", "full", many...), x.tagged("orders", "empty", "x")
	ask := url.Values{"do": {"tag"}, "id": {itoa(full.ID), itoa(empty.ID)}, "sure": {"yes"}}
	for what, c := range map[string]struct {
		add, off []string
		want     string
	}{
		"nothing":       {nil, nil, "Enter tags to add"},
		"blanks":        {[]string{" , ,"}, nil, "Enter tags to add"},
		"too long":      {[]string{strings.Repeat("x", 65)}, nil, "This is too long."},
		"markup":        {[]string{"<script>alert(1)</script>"}, nil, "This contains characters that are not allowed."},
		"invisible":     {[]string{"a\u202eb"}, nil, "This contains characters that are not allowed."},
		"too many":      {[]string{strings.Join(many, ",") + ",a,b"}, nil, "At most 16 tags, each only once."},
		"both":          {[]string{"x, y"}, []string{"x"}, "“x” cannot be both added and removed."},
		"another field": {[]string{strings.Repeat("x", 65)}, []string{"x"}, "This is too long."},
	} {
		form := url.Values{"add": c.add, "off": c.off}
		for name, v := range ask {
			form[name] = v
		}
		root.post("jobs/bulk", form).is(422).has(c.want).lacks("<script>alert")
		if x.tags(empty) != "x" {
			t.Fatalf("%s: the tags are %q", what, x.tags(empty))
		}
		back := root.filled("main")
		if len(c.add) > 0 && back.Get("add") != c.add[0] || !slices.Equal(back["off"], c.off) || len(back["id"]) != 2 {
			t.Errorf("%s: what was typed has become %v", what, back)
		}
	}
	root.post("jobs/bulk", with(with(ask, "add", "new,newer"), "off", "x")).is(200).has("Done for 1 of 2.", "Tags: At most 16 tags, each only once.")
	if x.tags(empty) != "new newer" || x.tags(full) != strings.Join(many, " ") {
		t.Errorf("the tags are %q and %q", x.tags(empty), x.tags(full))
	}
}

// TestBulkTagOfMany: at most 500 jobs, and of their tags the hundred that most of them have to
// choose from.
func TestBulkTagOfMany(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	var ids []string
	for i := range 501 {
		j := x.tagged("orders", fmt.Sprintf("job %03d", i), "common", fmt.Sprintf("own%03d", i))
		ids = append(ids, itoa(j.ID))
	}
	root.post("jobs/bulk", url.Values{"do": {"tag"}, "id": ids}).is(413).has("At most 500 jobs at once.")
	root.post("jobs/bulk", url.Values{"do": {"tag"}, "id": ids[:500]}).is(200).has("Tags of 500 jobs", "common · 500", "Only the 100 most common tags are listed.")
	form := root.filled("main")
	if n := strings.Count(root.body, `name="off"`); n != 100 || len(form["id"]) != 500 {
		t.Errorf("%d tags to choose from for %d jobs", n, len(form["id"]))
	}
	root.post("jobs/bulk", with(with(form, "add", "new"), "off", "common")).is(200).has("Done for 500 of 500.")
	if found := must1(x.store.SearchJobs(t.Context(), xxljob.JobSearch{Tags: []string{"new"}, Limit: 1000})); len(found) != 500 {
		t.Errorf("%d jobs have the tag", len(found))
	}
}

// TestBulkTagReadOnly: nothing is to be tagged, and no button says that it could be.
func TestBulkTagReadOnly(t *testing.T) { inMemory(t, testBulkTagReadOnly) }

func testBulkTagReadOnly(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.ReadOnly = true })
	root := x.admin()
	j := x.tagged("orders", "one", "old")
	root.get("jobs").is(200).lacks(`value="tag"`, `value="remove"`, `value="start"`)
	for _, sure := range []string{"", "yes"} {
		root.post("jobs/bulk", url.Values{"do": {"tag"}, "id": {itoa(j.ID)}, "add": {"new"}, "sure": {sure}}).is(403)
	}
	if x.tags(j) != "old" {
		t.Errorf("the tags are %q", x.tags(j))
	}
}

// meddling is a store in which somebody else edits a job between its reading and its edit.
type meddling struct {
	st     Store
	meddle func()
}

func (m *meddling) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	if f := m.meddle; f != nil {
		m.meddle = nil
		f()
	}
	return m.st.EditJob(ctx, id, e)
}

// TestBulkTagAgainstOthers: an edit of somebody else's in between is not overwritten.
func TestBulkTagAgainstOthers(t *testing.T) { onBothStores(t, testBulkTagAgainstOthers) }

func testBulkTagAgainstOthers(t *testing.T) {
	m := &meddling{}
	x := newSite(t, func(c *console.Config) {
		m.st = c.Store.(Store)
		c.Store = bent.WholeOf(m.st, m)
		c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	root := x.admin()
	one, two := x.tagged("orders", "one", "old"), x.tagged("orders", "two", "old")
	form := url.Values{"do": {"tag"}, "sure": {"yes"}, "id": {itoa(one.ID), itoa(two.ID)}, "add": {"new"}}
	m.meddle = func() {
		j := must1(x.store.Job(t.Context(), one.ID))
		j.Tags = []string{"of somebody else"}
		must1(x.s.UpdateJob(t.Context(), j))
	}
	root.post("jobs/bulk", form).is(200).has("Done for 1 of 2.", "Somebody has changed this since you opened it.")
	if x.tags(one) != "of somebody else" || x.tags(two) != "old new" {
		t.Errorf("the tags are %q and %q", x.tags(one), x.tags(two))
	}
	root.post("jobs/bulk", form).is(200).has("Done for 2 of 2.")
}

// TestBulkTagWhileTheStoreFails: in the middle of it, after the commit.
func TestBulkTagWhileTheStoreFails(t *testing.T) { onBothStores(t, testBulkTagWhileTheStoreFails) }

func testBulkTagWhileTheStoreFails(t *testing.T) {
	h := &halting{}
	x := newSite(t, func(c *console.Config) {
		h.st = c.Store.(Store)
		c.Store = bent.WholeOf(h.st, h)
		c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	root := x.admin()
	one, two := x.tagged("orders", "one"), x.tagged("orders", "two")
	form := url.Values{"do": {"tag"}, "sure": {"yes"}, "id": {itoa(one.ID), itoa(two.ID)}, "add": {"new"}}
	h.after = errors.New("the cable is out")
	root.post("jobs/bulk", form).is(200).has("Done for 0 of 2.", "It may or may not have been done.")
	h.after = nil
	root.post("jobs/bulk", form).is(200).has("Done for 2 of 2.")
	if x.tags(one) != "new" || x.tags(two) != "new" {
		t.Errorf("the tags are %q and %q", x.tags(one), x.tags(two))
	}
}
