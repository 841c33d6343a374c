package xxljob_test

// The management of an app's own jobs over HTTP.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

func definition(name string) wire.JobDefinition {
	return wire.JobDefinition{Name: name, Author: "ann", ScheduleType: "CRON", ScheduleConf: "0 0 3 * * ?", MisfireStrategy: "DO_NOTHING",
		ExecutorRouteStrategy: "FIRST", ExecutorHandler: "work", ExecutorParam: "p", ExecutorBlockStrategy: "SERIAL_EXECUTION",
		ExecutorTimeout: 3, ExecutorFailRetryCount: 2, GlueType: "BEAN"}
}

// TestJobAdmin: an app manages its own jobs over the wire, and sees no others.
func TestJobAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far", "other"}, Tokens: map[string][]string{"far": {"of-far"}, "other": {"of-other"}, "": {stage.Token}}}},
			map[string]*peer{at1: {token: "of-far"}})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		added := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobGroup: 99, JobDefinition: definition("nightly")})
		id, err := strconv.ParseInt(added.Data, 10, 64)
		if !added.OK() || err != nil || added.Content != added.Data {
			t.Fatalf("%+v: %v", added, err)
		}
		job := func() xxljob.Job {
			j, err := e.store.Job(t.Context(), id)
			stage.Must(t, err)
			return j
		}
		j := job()
		if !j.Stopped || j.App != "far" || j.Key != "" || j.Schedule != xxljob.Cron("0 0 3 * * ?") || j.Timeout != 3*time.Second || j.Retries != 2 || j.Author != "ann" {
			t.Errorf("added %+v", j)
		}
		if again := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("nightly")}); !again.OK() || again.Data == added.Data {
			t.Errorf("a second one of the same name: %+v", again)
		}

		one := wire.JobRequest{ID: id}
		changed := wire.UpdateJobRequest{ID: id, JobDefinition: definition("daily")}
		all := []struct {
			verb string
			msg  stage.Message
		}{{"updateJob", changed}, {"startJob", one}, {"stopJob", one}, {"triggerJob", wire.TriggerJobRequest{ID: id}}, {"removeJob", one}}
		for _, c := range all {
			want := wire.Failf("job %d not found.", id)
			if c.verb == "removeJob" {
				want = wire.Success() // it is not there: what was asked for is so
			}
			if ret := stage.Manage(t, e.admin, "other", c.verb, c.msg); ret != want {
				t.Errorf("%s by another app: %+v", c.verb, ret)
			}
			if ret := stage.Post(t, e.admin, stage.Token, "", c.verb, c.msg.Encode(nil)); ret.OK() {
				t.Errorf("%s by nobody in particular: %+v", c.verb, ret)
			}
		}
		if got := job(); got.Version != j.Version {
			t.Errorf("changed by another app: %+v", got)
		}

		// Children, which a request cannot name, stay.
		child, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "child", Handler: "work"})
		stage.Must(t, err)
		withChild := job()
		withChild.Children = []int64{child.ID}
		withChild.Schedule = withChild.Schedule.In("Asia/Shanghai")
		_, err = e.UpdateJob(t.Context(), withChild)
		stage.Must(t, err)
		if ret := stage.Manage(t, e.admin, "far", "updateJob", changed); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		if got := job(); got.Name != "daily" || !slices.Equal(got.Children, []int64{child.ID}) || got.Schedule.Zone != "Asia/Shanghai" || !got.Stopped {
			t.Errorf("updated %+v", got)
		}
		if ret := stage.Manage(t, e.admin, "far", "startJob", one); !ret.OK() || job().Stopped {
			t.Errorf("%+v", ret)
		}
		if ret := stage.Manage(t, e.admin, "far", "stopJob", one); !ret.OK() || !job().Stopped {
			t.Errorf("%+v", ret)
		}
		if ret := stage.Manage(t, e.admin, "far", "triggerJob", wire.TriggerJobRequest{ID: id, AddressList: "http://10.0.0.1:9999, "}); !ret.OK() {
			t.Errorf("%+v", ret)
		}
		synctest.Wait()
		if sent := e.peers[at1].sent(); len(sent) != 1 || sent[0].ExecutorParams != "" {
			t.Errorf("sent %+v", sent)
		}
		if runs := stage.AllOf(t, e.store, xxljob.RunFilter{JobID: id}); len(runs) != 1 || runs[0].Type != xxljob.TriggerAPI {
			t.Errorf("%+v", runs)
		}
		for range 2 { // the second time is a client's retry
			if ret := stage.Manage(t, e.admin, "far", "removeJob", one); ret != wire.Success() {
				t.Errorf("%+v", ret)
			}
		}
		if ret := stage.Manage(t, e.admin, "far", "removeJob", wire.JobRequest{}); ret != wire.Success() {
			t.Errorf("of no job: %+v", ret)
		}
		if j, err := e.store.Job(t.Context(), id); !errors.Is(err, xxljob.ErrNotFound) {
			t.Errorf("removed: %+v, %v", j, err)
		}
		log, err := e.store.Changes(t.Context(), id, 100)
		stage.Must(t, err)
		for _, c := range log {
			if c.Actor != "app:far" && c.Verb != "update" {
				t.Errorf("%s by %q", c.Verb, c.Actor)
			}
		}
	})
}

// TestJobAdminScripts: a script is added as a shell can read it, and no update of the
// rest of its job's definition touches it.
func TestJobAdminScripts(t *testing.T) {
	const script = "#!/bin/sh\r\necho a\rb\n"
	for _, c := range []struct {
		glue, stored string // the type, and what is stored of script
	}{
		{"GLUE_SHELL", "#!/bin/sh\necho ab\n"}, {"GLUE_PYTHON", script}, {"GLUE_GROOVY", script}, {"BEAN", script},
	} {
		t.Run(c.glue, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, JobsAPIScripts: []string{"far"}, Tokens: map[string][]string{"far": {"of-far"}}}}, nil)
				def := definition("script")
				def.GlueType, def.GlueSource, def.GlueRemark = c.glue, script, "first"
				if c.glue != "BEAN" {
					def.ExecutorHandler = ""
				}
				added := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: def})
				id, err := strconv.ParseInt(added.Data, 10, 64)
				if err != nil {
					t.Fatalf("%+v", added)
				}
				before, err := e.store.Job(t.Context(), id)
				stage.Must(t, err)
				if before.GlueType != c.glue || before.GlueSource != c.stored || before.GlueRemark != "first" {
					t.Errorf("added %q %q %q", before.GlueType, before.GlueSource, before.GlueRemark)
				}
				time.Sleep(time.Minute)
				for i, change := range []func(*wire.JobDefinition){
					func(d *wire.JobDefinition) { d.GlueType, d.GlueSource, d.GlueRemark = "", "", "" },
					func(d *wire.JobDefinition) { d.GlueSource, d.GlueRemark = "exit 1", "second" },
					func(d *wire.JobDefinition) { d.GlueType = "GLUE_PHP" },
					func(d *wire.JobDefinition) { d.GlueType = "LISP" },
				} {
					to := def
					to.Name = fmt.Sprint("name ", i)
					change(&to)
					if ret := stage.Manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: id, JobDefinition: to}); !ret.OK() {
						t.Errorf("update %d: %+v", i, ret)
					}
					after, err := e.store.Job(t.Context(), id)
					stage.Must(t, err)
					if after.Name != to.Name || after.GlueType != before.GlueType || after.GlueSource != before.GlueSource ||
						after.GlueRemark != before.GlueRemark || !after.GlueUpdated.Equal(before.GlueUpdated) {
						t.Errorf("update %d: %q, %q %q %q of %v", i, after.Name, after.GlueType, after.GlueSource, after.GlueRemark, after.GlueUpdated)
					}
				}
			})
		})
	}
}

// TestJobAdminFaults: what is wrong with a request is said to its sender, and stores
// nothing; an error of the store is not.
func TestJobAdminFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		e := newElsewhere(t, faults, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: map[string][]string{"far": {"of-far"}}}}, nil)
		bad := definition("")
		bad.ScheduleConf, bad.ExecutorRouteStrategy, bad.ExecutorParam = "* * * * *", "NORTH", strings.Repeat("x", 1<<17)
		ret := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: bad})
		for _, field := range []string{"Name", "Schedule", "Route", "Param"} {
			if ret.OK() || !strings.Contains(ret.Msg, field) {
				t.Errorf("%s is not named: %+v", field, ret)
			}
		}
		none := definition("manual")
		none.ScheduleType, none.ScheduleConf = "NONE", ""
		added := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: none})
		id, _ := strconv.ParseInt(added.Data, 10, 64)
		if ret := stage.Manage(t, e.admin, "far", "startJob", wire.JobRequest{ID: id}); ret.OK() || !strings.Contains(ret.Msg, "no schedule") {
			t.Errorf("start of a manual job: %+v", ret)
		}
		faults.Inject("AddJob", storetest.Fault{Before: true})
		if ret := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("x")}); ret.OK() || !strings.HasSuffix(ret.Msg, "internal error") {
			t.Errorf("an error of the store: %+v", ret)
		}
		faults.Clear()
		faults.Inject(storetest.All, storetest.Fault{Before: true, Err: errors.New("failed to connect to host=db.internal user=xxl_owner")})
		for verb, req := range map[string]stage.Message{
			"addJob": wire.AddJobRequest{JobDefinition: definition("x")}, "updateJob": wire.UpdateJobRequest{ID: id, JobDefinition: definition("x")},
			"removeJob": wire.JobRequest{ID: id}, "startJob": wire.JobRequest{ID: id}, "stopJob": wire.JobRequest{ID: id}, "triggerJob": wire.TriggerJobRequest{ID: id},
		} {
			if ret := stage.Manage(t, e.admin, "far", verb, req); ret.OK() || !strings.HasSuffix(ret.Msg, "internal error") {
				t.Errorf("%s while the store is away: %+v", verb, ret)
			}
		}
		faults.Clear()
		jobs, err := e.store.Jobs(t.Context(), xxljob.JobFilter{})
		stage.Must(t, err)
		if len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
	})
}

// TestJobAdminQuota: 100 calls in 30 s for each app.
func TestJobAdminQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far", "other"}, Tokens: map[string][]string{"far": {"of-far"}, "other": {"of-other"}}}}, nil)
		one := wire.JobRequest{ID: 1}
		for i := range 100 {
			if ret := stage.Manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeFail {
				t.Fatalf("call %d: %+v", i, ret)
			}
		}
		if ret := stage.Manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeTimeout || ret.Msg != wire.MsgTooMany {
			t.Errorf("one more: %+v", ret)
		}
		if ret := stage.Manage(t, e.admin, "other", "startJob", one); ret.Code != wire.CodeFail {
			t.Errorf("another app: %+v", ret)
		}
		time.Sleep(30 * time.Second)
		if ret := stage.Manage(t, e.admin, "far", "startJob", one); ret.Code != wire.CodeFail {
			t.Errorf("30 s later: %+v", ret)
		}
	})
}

// TestAppsOfMarkup: no job is added over HTTP to an app whose name is markup.
func TestAppsOfMarkup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, app := range []string{"<b>x</b>", `"><script>`, "a'b", "a`b", "a\u202eb", "a\u200bb"} {
			e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{app}, Tokens: map[string][]string{app: {"of-" + app}, "": {stage.Token}}}}, map[string]*peer{})
			ret := stage.Manage(t, e.admin, app, "addJob", wire.AddJobRequest{JobDefinition: definition("nightly")})
			if ret.OK() || !strings.Contains(ret.Msg, "App") {
				t.Errorf("%q: %+v", app, ret)
			}
		}
	})
}
