package xxljob_test

// Who may speak for which app: what a token that all share is good for, and the jobs API.

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// allJobCalls are the calls of the jobs API about a job.
func allJobCalls(id int64) []struct {
	verb string
	msg  stage.Message
} {
	one, def, script := wire.JobRequest{ID: id}, definition("theirs"), definition("script")
	script.GlueType, script.GlueSource = "GLUE_SHELL", "exit 1"
	return []struct {
		verb string
		msg  stage.Message
	}{
		{"addJob", wire.AddJobRequest{JobDefinition: def}}, {"addJob", wire.AddJobRequest{JobDefinition: script}},
		{"updateJob", wire.UpdateJobRequest{ID: id, JobDefinition: def}}, {"startJob", one}, {"triggerJob", wire.TriggerJobRequest{ID: id}},
		{"stopJob", one}, {"removeJob", one},
	}
}

// hostJob adds a job of the host's own app, which has a handler for it.
func hostJob(t *testing.T, e *elsewhere) xxljob.Job {
	t.Helper()
	stage.Must(t, e.Handle("work", stage.NothingToDo))
	job, err := e.AddJob(t.Context(), xxljob.Job{App: "here", Name: "own", Handler: "work"})
	stage.Must(t, err)
	return job
}

// TestJobsAPIOff: unless the config names the apps nobody manages jobs, with whatever
// token, and the answer says so in a way that those know who look for an older admin.
func TestJobsAPIOff(t *testing.T) {
	for name, cfg := range map[string]xxljob.Config{
		"own token": {App: "here", HTTP: xxljob.HTTPConfig{Tokens: tokensOf("here")}},
		"shared":    {App: "here"},
		"insecure":  {App: "here", HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{}, Insecure: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, cfg, nil)
				job := hostJob(t, e)
				before := stage.SnapshotOf(t, e.store)
				for _, c := range allJobCalls(job.ID) {
					ret := stage.Post(t, e.admin, stage.Token, "here", c.verb, c.msg.Encode(nil))
					if ret.Code != wire.CodeFail || !strings.HasPrefix(ret.Msg, fmt.Sprintf(wire.MsgURINotFound, c.verb)) || !strings.Contains(ret.Msg, "Config.HTTP.JobsAPI") {
						t.Errorf("%s: %+v", c.verb, ret)
					}
				}
				if after := stage.SnapshotOf(t, e.store); after != before {
					t.Errorf("changed:\n%s\n%s", before, after)
				}
			})
		})
	}
}

// TestSharedTokenIsNotTheHosts: whoever has the token that all share may name the host's
// app, and neither manages its jobs nor registers for it nor reports its results, at any
// node that knows who has the app attached; the app's own token does.
func TestSharedTokenIsNotTheHosts(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := xxljob.Config{App: "here", Node: "a", HTTP: xxljob.HTTPConfig{JobsAPI: []string{"here", "far"}}}
			if insecure {
				cfg.HTTP.Tokens, cfg.HTTP.Insecure = map[string][]string{}, true
			}
			st, lines := memory.New(), &stage.LogLines{}
			lines.LogTo(&cfg)
			a := newElsewhere(t, st, cfg, nil)
			job := hostJob(t, a)
			cfg.App, cfg.Node = "plain", "b" // one that only schedules
			b := newElsewhere(t, st, cfg, nil)
			time.Sleep(10 * time.Second)
			before := stage.SnapshotOf(t, st)
			done := 0
			for _, e := range []*elsewhere{a, b} {
				for _, c := range allJobCalls(job.ID) {
					if ret := stage.Post(t, e.admin, stage.Token, "here", c.verb, c.msg.Encode(nil)); ret.OK() {
						done++
					} else if !strings.Contains(ret.Msg, `app "here" runs inside the scheduler`) {
						t.Errorf("%s: %+v", c.verb, ret)
					}
				}
				for _, named := range []string{"", "here"} {
					for _, verb := range []string{"registry", "registryRemove"} {
						reg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "here", RegistryValue: at1}
						if ret := stage.Post(t, e.admin, stage.Token, named, verb, reg.Encode(nil)); ret.OK() {
							done++
						}
					}
				}
			}
			if after := stage.SnapshotOf(t, st); done > 0 || after != before {
				t.Errorf("%d calls had an effect:\n%s\n%s", done, before, after)
			}
			if n := len(lines.With("a caller with the token that all share was refused")); n != 2 {
				t.Errorf("said %d times by two nodes", n)
			}
			// An app that runs nowhere here is spoken for as before.
			if ret := stage.Post(t, a.admin, stage.Token, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("theirs")}.Encode(nil)); !ret.OK() {
				t.Errorf("%+v", ret)
			}
			a.register("far", at1)
		})
	}
	synctest.Test(t, func(t *testing.T) { // its own token
		e := newElsewhere(t, nil, xxljob.Config{App: "here", HTTP: xxljob.HTTPConfig{JobsAPI: []string{"here"}, Tokens: tokensOf("here")}}, nil)
		job := hostJob(t, e)
		e.register("here", at1)
		e.call("triggerJob", wire.TriggerJobRequest{ID: job.ID})
	})
}

// TestSharedTokenAsThingsChange: what an app may be spoken for by is decided at each
// request: when its executor is attached, a run that is elsewhere is no more reported with
// the token that all share.
func TestSharedTokenAsThingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &stage.LogLines{}
		cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}}}
		lines.LogTo(&cfg)
		e := newElsewhere(t, nil, cfg, map[string]*peer{at1: {}})
		e.register("far", at1)
		first, second := e.trigger(xxljob.Job{App: "far", Name: "first"}), e.trigger(xxljob.Job{App: "far", Name: "second"})
		synctest.Wait()
		e.mustBe(first, xxljob.StateDispatched)
		e.report(first, 200, "done")
		e.mustBe(first, xxljob.StateSucceeded)
		if len(lines.With("nobody can manage the jobs")) != 0 {
			t.Error("warned too early")
		}
		ex, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
		stage.Must(t, err)
		stage.Must(t, e.Attach(ex))
		// An honest executor is to send it again when it has a token of its app's own.
		forged := wire.CallbackRequest{LogID: second, HandleCode: 200, HandleMsg: "forged"}
		if ret := e.callback(forged); ret.OK() {
			t.Error("a result that may come to count is acknowledged")
		}
		e.mustBe(second, xxljob.StateDispatched)
		if len(lines.With("nobody can manage the jobs")) != 1 {
			t.Error("no warning that the entry of JobsAPI has no effect any more")
		}
	})
}

// TestSharedTokenBeforeTheFirstLook: a node that has just started knows nobody who may have an
// app attached, and lets nobody speak for one with the token that all share.
func TestSharedTokenBeforeTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a := newElsewhere(t, st, xxljob.Config{App: "here", Node: "a"}, nil)
		hostJob(t, a)
		time.Sleep(10 * time.Second)
		faults, hang := storetest.Wrap(st), make(chan struct{})
		faults.Inject("Join", storetest.Fault{Hang: hang})
		b := newElsewhere(t, faults, xxljob.Config{App: "plain", Node: "b"}, nil)
		for _, app := range []string{"here", "far"} {
			if ret := b.registration(stage.Token, app, at1); ret.OK() || !strings.Contains(ret.Msg, "try again") {
				t.Errorf("%s: %+v", app, ret)
			}
		}
		close(hang)
		time.Sleep(10 * time.Second)
		if ret := b.registration(stage.Token, "here", at1); ret.OK() || !strings.Contains(ret.Msg, "runs inside the scheduler") {
			t.Errorf("%+v", ret)
		}
		b.register("far", at1)
	})
}

// TestJobsAPIScripts: callers define no scripts unless their app is named, neither new nor
// by what an existing one is given; they may use those that are there.
func TestJobsAPIScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far", "sure"}, JobsAPIScripts: []string{"sure"},
			Tokens: map[string][]string{"far": {"of-far"}, "sure": {"of-sure"}}}}, nil)
		for _, glue := range []string{"GLUE_SHELL", "GLUE_PYTHON", "GLUE_GROOVY", "glue_shell", "LISP"} {
			def := definition("new")
			def.GlueType, def.GlueSource = glue, "exit 1"
			if ret := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: def}); ret.OK() || !strings.Contains(ret.Msg, "scripts") {
				t.Errorf("addJob of %s: %+v", glue, ret)
			}
		}
		script := func(app, name string) (xxljob.Job, wire.JobDefinition) {
			job, err := e.AddJob(t.Context(), xxljob.Job{App: app, Name: name, Param: "p", GlueType: "GLUE_SHELL", GlueSource: `eval "$1"`, Stopped: true,
				Schedule: xxljob.Cron("0 0 3 * * ?")})
			stage.Must(t, err)
			def := definition(name)
			def.ExecutorHandler, def.GlueType, def.GlueSource = "", "GLUE_SHELL", job.GlueSource
			return job, def
		}
		job, def := script("far", "script")
		bean := stage.Manage(t, e.admin, "far", "addJob", wire.AddJobRequest{JobDefinition: definition("bean")})
		beanID, err := strconv.ParseInt(bean.Data, 10, 64)
		stage.Must(t, err)
		before := stage.SnapshotOf(t, e.store)
		for name, c := range map[string]struct {
			id     int64
			change func(*wire.JobDefinition)
		}{
			"the parameter":         {job.ID, func(d *wire.JobDefinition) { d.ExecutorParam = "curl evil" }},
			"the handler":           {job.ID, func(d *wire.JobDefinition) { d.ExecutorHandler = "work" }},
			"another type":          {job.ID, func(d *wire.JobDefinition) { d.GlueType = "GLUE_PHP" }},
			"as if it were no more": {job.ID, func(d *wire.JobDefinition) { d.GlueType, d.ExecutorParam = "BEAN", "curl evil" }},
			"out of a handler":      {beanID, func(*wire.JobDefinition) {}},
		} {
			to := def
			c.change(&to)
			if ret := stage.Manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: c.id, JobDefinition: to}); ret.OK() || !strings.Contains(ret.Msg, "scripts") {
				t.Errorf("updateJob, %s: %+v", name, ret)
			}
		}
		if after := stage.SnapshotOf(t, e.store); after != before {
			t.Errorf("changed:\n%s\n%s", before, after)
		}
		def.ScheduleConf, def.Name = "0 0 4 * * ?", "later"
		for verb, msg := range map[string]stage.Message{"updateJob": wire.UpdateJobRequest{ID: job.ID, JobDefinition: def},
			"triggerJob": wire.TriggerJobRequest{ID: job.ID, ExecutorParam: "p"}, "startJob": wire.JobRequest{ID: job.ID}} {
			if ret := stage.Manage(t, e.admin, "far", verb, msg); !ret.OK() {
				t.Errorf("%s of a script that is there: %+v", verb, ret)
			}
		}
		if ret := stage.Manage(t, e.admin, "far", "triggerJob", wire.TriggerJobRequest{ID: job.ID}); !ret.OK() {
			t.Errorf("without a parameter: %+v", ret)
		}
		if ret := stage.Manage(t, e.admin, "far", "triggerJob", wire.TriggerJobRequest{ID: job.ID, ExecutorParam: "curl evil"}); ret.OK() || !strings.Contains(ret.Msg, "scripts") {
			t.Errorf("with another parameter: %+v", ret)
		}
		hidden, def := script("far", "hidden")
		hidden.Secret = true
		_, err = e.UpdateJob(t.Context(), hidden)
		stage.Must(t, err)
		for _, guess := range []string{"p", "guess"} {
			def.ExecutorParam = guess
			if ret := stage.Manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: hidden.ID, JobDefinition: def}); ret.OK() || !strings.Contains(ret.Msg, "the parameter is part of it") {
				t.Errorf("updateJob with %q of a script whose parameter is hidden: %+v", guess, ret)
			}
		}
		job, def = script("sure", "script")
		if ret := stage.Manage(t, e.admin, "sure", "triggerJob", wire.TriggerJobRequest{ID: job.ID, ExecutorParam: "another"}); !ret.OK() {
			t.Errorf("with another parameter, by an app that may: %+v", ret)
		}
		def.ExecutorParam = "another"
		if ret := stage.Manage(t, e.admin, "sure", "updateJob", wire.UpdateJobRequest{ID: job.ID, JobDefinition: def}); !ret.OK() {
			t.Errorf("by an app that may: %+v", ret)
		}
	})
}

// TestJobsAPIOfOthers: a caller of an app that is not named manages nothing, and costs no
// call of the store.
func TestJobsAPIOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: map[string][]string{"far": {"of-far"}, "other": {"of-other"}}}}, nil)
		for range 200 { // they do not come under the quota either
			if ret := stage.Manage(t, e.admin, "other", "startJob", wire.JobRequest{ID: 1}); ret.Code != wire.CodeFail || !strings.Contains(ret.Msg, "may not manage jobs") {
				t.Fatalf("%+v", ret)
			}
		}
	})
}

// TestConfigJobsAPI: names that can never have an effect are faults.
func TestConfigJobsAPI(t *testing.T) {
	far := map[string][]string{"far": {"of-far"}}
	for _, c := range []struct {
		cfg  xxljob.Config
		want string
	}{
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, JobsAPIScripts: []string{"far"}, Tokens: far}}, ""},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"any"}, Tokens: map[string][]string{"": {stage.Token}}}}, ""},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"any"}, Insecure: true}}, ""},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{""}, Insecure: true}}, `JobsAPI "": must not be empty`},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{strings.Repeat("a", 65)}, Insecure: true}}, "65 bytes, at most 64"},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far", "far"}, Tokens: far}}, `JobsAPI "far": listed twice`},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far", "other"}, Tokens: far}}, `JobsAPI "other": no token`},
		{xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPIScripts: []string{"far"}, Tokens: far}}, `JobsAPIScripts "far": want one of HTTP.JobsAPI`},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: %v, want %q", c.cfg.HTTP.JobsAPI, c.cfg.HTTP.JobsAPIScripts, err, c.want)
		}
	}
}

// TestQuotaByToken: apps that one token names have one quota together, and what names they
// have costs nothing.
func TestQuotaByToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // callers whose app is wrong are answered ten times a second
		const apps = 300
		cfg := xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {stage.Token}, "own": {"of-own"}}, JobsAPI: []string{"own"}}, Logger: stage.QuietLog()}
		for i := range apps {
			cfg.HTTP.JobsAPI = append(cfg.HTTP.JobsAPI, fmt.Sprint("app-", i))
		}
		s, err := xxljob.New(memory.New(), cfg)
		stage.Must(t, err)
		h, err := s.AdminHandler()
		stage.Must(t, err)
		passed := func(token string, name func(i int) string) (n int) {
			t.Helper()
			for i := range apps {
				switch ret := stage.Post(t, h, token, name(i), "startJob", wire.JobRequest{ID: 1}.Encode(nil)); {
				case ret.Code == wire.CodeFail && strings.Contains(ret.Msg, "not found"):
					n++
				case ret.OK():
					t.Errorf("%+v", ret)
				}
			}
			return n
		}
		if n := passed(stage.Token, func(i int) string { return cfg.HTTP.JobsAPI[1+i] }); n != 100 {
			t.Errorf("%d calls of %d apps by one token passed, want 100", n, apps)
		}
		if n := passed("of-own", func(int) string { return "own" }); n != 100 {
			t.Errorf("%d calls by another token passed, want 100", n)
		}
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before, long := heap(), strings.Repeat("x", 900_000)
		for i := range apps {
			req := httptest.NewRequest(http.MethodPost, "/api/startJob", bytes.NewReader(wire.JobRequest{ID: 1}.Encode(nil)))
			req.Header.Set(wire.HeaderToken, stage.Token)
			req.Header.Set(wire.HeaderApp, fmt.Sprint(i, long))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Body.Len() > 2000 {
				t.Fatalf("an answer of %d bytes", rec.Body.Len())
			}
		}
		if after := heap(); after > before+4<<20 {
			t.Errorf("%d MiB are kept of names", (after-before)>>20)
		}
		runtime.KeepAlive(h)
	})
}

// TestTriggerAmongMany: how many addresses a trigger over the wire may name is bounded, and
// each is looked up once.
func TestTriggerAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: tokensOf("far")}}, map[string]*peer{at1: {}})
		e.register("far", at1)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "work"})
		stage.Must(t, err)
		list := func(n int) string { return strings.Join(slices.Repeat([]string{"http://10.9.9.9"}, n), ",") }
		for name, text := range map[string]string{"many": list(1001), "long": "http://" + strings.Repeat("x", 300), "markup": "http://<script>"} {
			if ret := stage.Post(t, e.admin, stage.Token, "", "triggerJob", wire.TriggerJobRequest{ID: job.ID, AddressList: text}.Encode(nil)); ret.OK() || !strings.Contains(ret.Msg, "addressList") {
				t.Errorf("%s: %+v", name, ret)
			}
		}
		e.call("triggerJob", wire.TriggerJobRequest{ID: job.ID, AddressList: list(999) + "," + strings.TrimSuffix(at1, "/")})
		synctest.Wait()
		runs := stage.AllOf(t, e.store, xxljob.RunFilter{JobID: job.ID})
		if len(runs) != 1 || runs[0].State != xxljob.StateDispatched || runs[0].Address != at1 {
			t.Errorf("%+v", runs)
		}
		stage.Must(t, e.Stop(context.Background()))
	})
}
