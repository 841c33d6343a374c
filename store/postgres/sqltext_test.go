package postgres_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestTextsAreNoSQL: whatever texts come over the wire or from a host, by the whole way of a
// job, come back as they were, and no statement of theirs is run.
func TestTextsAreNoSQL(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	run(t, pool, "create table "+schema+".canary (id int)")
	do := schema + ".canary; --"
	for _, text := range []string{
		"'; drop table " + do, `"; drop table ` + do, `\'; drop table ` + do, "'); drop table " + do, "$$; drop table " + do,
		"$1", "$1::regclass", "{{schema}}", "%s %d %%", "/* */ -- \n;", `{"},{'`, "' or '1'='1", "%' or true --", `E'\x27`,
	} {
		s := openOn(t, pool, postgres.Config{Schema: schema})
		a := own(t, s, "inc"+text, 2)
		job := newJob()
		job.App, job.Key, job.Name, job.Author, job.AlarmEmail = "a"+text, "k"+text, "n"+text, text, text
		job.Handler, job.Param, job.GlueSource, job.GlueRemark = text, text, text, text
		added, err := s.AddJob(store.WithActor(a.ctx, text), job, nil)
		must(t, err)
		found, err := s.Jobs(a.ctx, store.JobFilter{App: job.App, Name: job.Name, Author: job.Author, Handler: job.Handler, Keys: []string{job.Key}, Limit: 10})
		must(t, err)
		if len(found) != 1 || found[0].ID != added.ID || found[0].Param != text || found[0].GlueSource != text {
			t.Errorf("%q: found %+v", text, found)
		}
		ended := a.started(added)
		res := result(ended)
		res.HandleMsg = text
		accepted, err := s.Finish(a.ctx, nil, []store.Result{res})
		must(t, err)
		if len(accepted) != 1 || accepted[0].HandleMsg != text {
			t.Errorf("%q: finished %+v", text, accepted)
		}
		param := text
		by, err := s.AddRun(a.ctx, added.ID, store.Trigger{Key: text, Param: &param, Addresses: []string{text}})
		must(t, err)
		if by.Param != text || by.Addresses[0] != text {
			t.Errorf("%q: triggered %+v", text, by)
		}
		must(t, s.PutAddresses(a.ctx, []store.Registration{{App: job.App, Address: text, BootID: text, Capabilities: []string{text}}}))
		regs, err := s.Addresses(a.ctx, job.App, time.Hour)
		must(t, err)
		if len(regs) != 1 || regs[0].Address != text || regs[0].BootID != text || regs[0].Capabilities[0] != text {
			t.Errorf("%q: registered %+v", text, regs)
		}
		must(t, s.SaveGroup(a.ctx, store.Group{App: job.App, Title: text, Addresses: []string{text}}))
		must(t, s.RemoveJob(a.ctx, added.ID))
		must(t, s.Leave(a.ctx, a.inc))
		s.Close()
	}
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".canary"); n != 0 {
		t.Errorf("the canary has %d rows", n)
	}
	if n := ask[int](t, pool, "select count(*)::int from pg_class where relnamespace = '"+schema+"'::regnamespace and relname = 'canary'"); n != 1 {
		t.Error("the canary is gone")
	}
}
