package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// giver is a kind of caller that may give parameters, or try to.
type giver struct {
	name  string
	once  func(job int64, param string)
	again func(run int64)
	save  func(job xxljob.Job, fields map[string]string)
	add   func(fields map[string]string)
}

// givers are the kinds of callers: the host, people of the console, all but the admin of the app
// "orders", one of them who may write scripts and one of "billing" as well; and programs of "orders".
func (x *site) givers() []giver {
	list := []giver{x.hostGives()}
	for _, u := range []console.User{
		{Name: "admin", Admin: true},
		{Name: "operator", Apps: map[string]console.Role{"orders": console.Operator}},
		{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor}},
		{Name: "scripted", Apps: map[string]console.Role{"orders": console.Editor}, Scripts: true},
		{Name: "both", Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Editor}},
	} {
		list = append(list, x.user(u).gives(u.Name))
	}
	return append(list, x.programGives("program"), x.programGives("trusted", "orders"))
}

func (x *site) hostGives() giver {
	ctx := context.Background()
	set := func(j *xxljob.Job, fields map[string]string) {
		for name, v := range fields {
			switch name {
			case "param":
				j.Param = v
			case "childparam":
				j.ChildParam = xxljob.ChildParam(v)
			case "children":
				var id int64
				_, err := fmt.Sscan(v, &id)
				must(x.T, err)
				j.Children = []int64{id}
			case "childkeys":
				j.ChildKeys = []string{v}
			case "afterkeys":
				j.AfterKeys = []string{v}
			case "after":
				var id int64
				_, err := fmt.Sscan(v, &id)
				must(x.T, err)
				j.After = []int64{id}
			case "name":
				j.Name = v
			case "secret":
				j.Secret = v != ""
			}
		}
	}
	return giver{"host", func(job int64, param string) {
		_, err := x.s.Trigger(ctx, job, xxljob.Trigger{Param: &param})
		must(x.T, err)
	}, func(run int64) {
		_, err := x.s.Again(ctx, run)
		must(x.T, err)
	}, func(job xxljob.Job, fields map[string]string) {
		d := job.Definition()
		set(&d, fields)
		_, err := x.s.UpdateJob(ctx, d)
		must(x.T, err)
	}, func(fields map[string]string) {
		j := xxljob.Job{App: "orders", Handler: "work"}
		set(&j, fields)
		_, err := x.s.AddJob(ctx, j)
		must(x.T, err)
	}}
}

func (b *browser) gives(name string) giver {
	form := func(fields map[string]string) url.Values {
		f := url.Values{}
		for k, v := range fields {
			f.Set(k, v)
		}
		return f
	}
	return giver{name, func(job int64, param string) {
		b.post(fmt.Sprintf("jobs/%d/trigger", job), url.Values{"param": {param}, "own": {"1"}})
	}, func(run int64) {
		b.post(fmt.Sprintf("runs/%d/again", run), nil)
	}, func(job xxljob.Job, fields map[string]string) {
		f := form(fields)
		f.Set("version", fmt.Sprint(job.Version))
		b.post(fmt.Sprintf("jobs/%d/edit", job.ID), f)
	}, func(fields map[string]string) {
		f := form(fields)
		f.Set("app", "orders")
		f.Set("handler", "work")
		f.Set("type", "NONE")
		b.post("jobs/new", f)
	}}
}

// programGives is a program with the token of "orders".
func (x *site) programGives(name string, scripts ...string) giver {
	s := must1(xxljob.New(x.store, xxljob.Config{App: "host", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{
		JobsAPI: []string{"orders"}, JobsAPIScripts: scripts, Tokens: map[string][]string{"orders": {"of-orders"}}}}))
	h := must1(s.AdminHandler())
	call := func(verb string, m interface{ Encode([]byte) []byte }) {
		r := httptest.NewRequest(http.MethodPost, "http://host.example/api/"+verb, strings.NewReader(string(m.Encode(nil))))
		r.Header.Set("XXL-JOB-ACCESS-TOKEN", "of-orders")
		r.Header.Set("XXL-JOB-APPNAME", "orders")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			x.Fatalf("%s: %d %s", verb, w.Code, w.Body)
		}
	}
	return giver{name, func(job int64, param string) {
		call("triggerJob", wire.TriggerJobRequest{ID: job, ExecutorParam: param})
	}, func(int64) {}, func(job xxljob.Job, fields map[string]string) {
		if len(fields) > 1 {
			return // a request has no links
		}
		call("updateJob", wire.UpdateJobRequest{ID: job.ID, JobDefinition: wire.JobDefinition{Name: job.Name, Author: "a", ScheduleType: "NONE", MisfireStrategy: "DO_NOTHING",
			ExecutorRouteStrategy: "FIRST", ExecutorHandler: job.Handler, ExecutorBlockStrategy: "SERIAL_EXECUTION", GlueType: job.GlueType, ExecutorParam: fields["param"]}})
	}, func(map[string]string) {}}
}

// TestGrants: each way by which a parameter can come to a run, by each kind of caller, to a job of
// its app, a script of it, a job of another app and a script of that. The host has made what is there
// before. An answer is y where it was done, o where it was with the job's own parameter in place of
// none, and n where nothing was, in the order of givers: the host, an admin, an operator, an editor, an editor who may write scripts, an editor of both apps, a
// program of the app, and one that may write scripts.
func TestGrants(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		for _, kind := range []struct {
			name, app string
			script    bool
		}{{"plain", "orders", false}, {"script", "orders", true}, {"other", "billing", false}, {"other script", "billing", true}} {
			for way, want := range map[string]map[string]string{
				"run once":                        {"plain": "yyyyyyyy", "script": "yynnynny", "other": "yynnnynn", "other script": "yynnnnnn"},
				"run again":                       {"plain": "yyyyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"run the parent once":             {"plain": "yyyyyyyy", "script": "yynnynny", "other": "yyyyyyyy", "other script": "yynnnnnn"},
				"run the parent's parent once":    {"plain": "yyyyyyyy", "script": "yynnynny", "other": "yyyyyyyy", "other script": "yynnnnnn"},
				"run the parent again":            {"plain": "yyyyyynn", "script": "yynnynnn", "other": "yyyyyynn", "other script": "yynnnnnn"},
				"edit the parameter":              {"plain": "yynyyyyy", "script": "yynnynny", "other": "yynnnynn", "other script": "yynnnnnn"},
				"edit the parent's parameter":     {"plain": "yynyyyyy", "script": "yynnynny", "other": "yynyyyyy", "other script": "yynnnnnn"},
				"hand on the parameter":           {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"hand on the result":              {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"lead to it by its id":            {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"lead to it by its key":           {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"lead to what leads to it":        {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynyyynn", "other script": "yynnnnnn"},
				"lead to it in a new job":         {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"lead to it by a former version":  {"plain": "yynyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"run behind it by its id":         {"plain": "yynyyynn", "script": "yynyyynn", "other": "yynnnynn", "other script": "yynnnynn"},
				"run behind it by its key":        {"plain": "yynyyynn", "script": "yynyyynn", "other": "yynnnynn", "other script": "yynnnynn"},
				"lead to it with its own (plain)": {"plain": "yynyyynn", "script": "yynyyynn", "other": "yynnnynn", "other script": "yynnnynn"},

				"run once, empty":                     {"plain": "yyyyyyyy", "script": "yynnynoy", "other": "yynnnynn", "other script": "yynnnnnn"},
				"run again, empty":                    {"plain": "yyyyyynn", "script": "yynnynnn", "other": "yynnnynn", "other script": "yynnnnnn"},
				"run the parent once, empty":          {"plain": "yyyyyyyy", "script": "yynnynoy", "other": "yyyyyyyy", "other script": "yynnnnoo"},
				"run the parent's parent once, empty": {"plain": "yyyyyyyy", "script": "yynnynoy", "other": "yyyyyyyy", "other script": "yynnnnoo"},
				"run the parent again, empty":         {"plain": "yyyyyynn", "script": "yynnynnn", "other": "yyyyyynn", "other script": "yynnnnnn"},
				"edit the parameter, empty":           {"plain": "yynyyyyy", "script": "yynnynny", "other": "yynnnynn", "other script": "yynnnnnn"},
				"edit the parent's parameter, empty":  {"plain": "yynyyyyy", "script": "yynnynny", "other": "yynyyyyy", "other script": "yynnnnnn"},
			} {
				x := newSite(t)
				var got strings.Builder
				for _, who := range x.givers() {
					got.WriteString(x.goes(who, way, kind.app, kind.script))
				}
				if got.String() != want[kind.name] {
					t.Errorf("%s, %s: %s, want %s", way, kind.name, got.String(), want[kind.name])
				}
			}
		}
	})
}

// goes has a caller go a way that leads a parameter to a job of the app, which is empty where the way says
// so, and says whether that has changed anything.
func (x *site) goes(who giver, way, app string, script bool) string {
	x.Helper()
	ctx := context.Background()
	n := 0
	add := func(app string, more func(*xxljob.Job)) xxljob.Job {
		n++
		key := fmt.Sprint(who.name, n)
		j := xxljob.Job{App: app, Key: key, Name: key, Handler: "work", Param: "as it is"}
		more(&j)
		return must1(x.s.AddJob(ctx, j))
	}
	target := add(app, func(j *xxljob.Job) {
		if script {
			j.Handler, j.GlueType, j.GlueSource = "", "GLUE_SHELL", "eval $1"
		}
	})
	parentOf := func(child xxljob.Job, by xxljob.ChildParam) xxljob.Job {
		return add("orders", func(j *xxljob.Job) { j.Children, j.ChildParam = []int64{child.ID}, by })
	}
	way, empty := strings.CutSuffix(way, ", empty")
	another, byHost := "another", "given by the host"
	if empty {
		another, byHost = "", ""
	}
	given := func(j xxljob.Job) int64 {
		return must1(x.s.Trigger(ctx, j.ID, xxljob.Trigger{Param: &byHost}))[0]
	}
	state := func() string {
		jobs := must1(x.store.Jobs(ctx, xxljob.JobFilter{Limit: 1000}))
		runs := must1(x.store.Runs(ctx, xxljob.RunFilter{Limit: 1000}))
		text := fmt.Sprint(len(jobs), len(runs))
		for _, j := range jobs {
			text += fmt.Sprint(" ", j.Version)
		}
		return text
	}
	id, key := fmt.Sprint(target.ID), target.App+"/"+target.Key
	var try func()
	switch way {
	case "run once":
		try = func() { who.once(target.ID, another) }
	case "run again":
		run := given(target)
		try = func() { who.again(run) }
	case "run the parent once":
		p := parentOf(target, xxljob.ChildParamParent)
		try = func() { who.once(p.ID, another) }
	case "run the parent's parent once":
		p := parentOf(parentOf(target, xxljob.ChildParamParent), xxljob.ChildParamParent)
		try = func() { who.once(p.ID, another) }
	case "run the parent again":
		run := given(parentOf(target, xxljob.ChildParamParent))
		try = func() { who.again(run) }
	case "edit the parameter":
		try = func() { who.save(target, map[string]string{"param": another}) }
	case "edit the parent's parameter":
		p := parentOf(target, xxljob.ChildParamParent)
		try = func() { who.save(p, map[string]string{"param": another}) }
	case "hand on the parameter", "hand on the result":
		p, by := parentOf(target, ""), "PARENT"
		if way == "hand on the result" {
			by = "RESULT"
		}
		try = func() { who.save(p, map[string]string{"childparam": by, "param": p.Param}) }
	case "lead to it by its id":
		p := add("orders", func(j *xxljob.Job) { j.ChildParam = xxljob.ChildParamParent })
		try = func() { who.save(p, map[string]string{"children": id, "param": p.Param}) }
	case "lead to it by its key":
		p := add("orders", func(j *xxljob.Job) { j.ChildParam = xxljob.ChildParamResult })
		try = func() { who.save(p, map[string]string{"childkeys": key, "param": p.Param}) }
	case "lead to what leads to it":
		m := parentOf(target, xxljob.ChildParamParent)
		p := add("orders", func(j *xxljob.Job) { j.ChildParam = xxljob.ChildParamResult })
		try = func() { who.save(p, map[string]string{"children": fmt.Sprint(m.ID), "param": p.Param}) }
	case "lead to it in a new job":
		try = func() {
			who.add(map[string]string{"name": "new of " + who.name, "children": id, "childparam": "PARENT"})
		}
	case "lead to it by a former version":
		p := parentOf(target, xxljob.ChildParamParent)
		d := p.Definition()
		d.Children = nil
		now := must1(x.s.UpdateJob(ctx, d))
		try = func() {
			who.save(now, map[string]string{"restores": fmt.Sprint(p.Version), "children": id, "param": p.Param})
		}
	case "run behind it by its id":
		p := add("orders", func(*xxljob.Job) {})
		try = func() { who.save(p, map[string]string{"after": id, "param": p.Param}) }
	case "run behind it by its key":
		p := add("orders", func(*xxljob.Job) {})
		try = func() { who.save(p, map[string]string{"afterkeys": key, "param": p.Param}) }
	case "lead to it with its own (plain)":
		p := add("orders", func(*xxljob.Job) {})
		try = func() { who.save(p, map[string]string{"children": id, "param": p.Param}) }
	default:
		x.Fatalf("no way %q", way)
	}
	before := state()
	try()
	newest := must1(x.store.Runs(ctx, xxljob.RunFilter{Limit: 1}))
	switch {
	case state() == before:
		return "n"
	case empty && strings.HasPrefix(way, "run ") && !newest[0].ParamSet:
		return "o"
	}
	return "y"
}

// TestAKeyThatComesLater: an editor has a job lead to a key that no job has, and no script gets that
// key by who may not say what scripts are given.
func TestAKeyThatComesLater(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		ctx := context.Background()
		editor := x.user(console.User{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor}}).gives("editor")
		scripted := x.user(console.User{Name: "scripted", Apps: map[string]console.Role{"orders": console.Editor}, Scripts: true}).gives("scripted")
		parent := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "parent", Name: "parent", Handler: "work"}))
		script := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "script", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "eval $1"}))
		between := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "between", Name: "between", Handler: "work", Children: []int64{script.ID}, ChildParam: xxljob.ChildParamParent}))
		editor.save(parent, map[string]string{"childkeys": "orders/later", "childparam": "PARENT"})
		if j := must1(x.store.Job(ctx, parent.ID)); j.ChildParam != xxljob.ChildParamParent {
			t.Fatalf("the parent was not saved: %+v", j)
		}
		for _, j := range []xxljob.Job{script, between} {
			editor.save(j, map[string]string{"key": "later"})
			if now := must1(x.store.Job(ctx, j.ID)); now.Key != j.Key {
				t.Errorf("an editor without scripts has given %s the key %q", j.Name, now.Key)
			}
		}
		scripted.save(script, map[string]string{"key": "later"})
		if now := must1(x.store.Job(ctx, script.ID)); now.Key != "later" {
			t.Errorf("who may write scripts could not give one the key: %+v", now)
		}
	})
}

// TestBothEndsOfALinkAtOnce: somebody has a job lead to a key, and somebody else gives that key to a
// script, each of whom may not do what both together have done. Each is let where the other is not there
// yet; where both are looked at before either is stored, one of them at least is taken back, in
// whatever order they are stored.
func TestBothEndsOfALinkAtOnce(t *testing.T) {
	atOnce(t)
	for _, first := range []string{"parent", "script"} {
		for _, adds := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				st := &meeting{st: newStore(t), first: first, met: make(chan struct{})}
				x := newSiteOn(t, bent.WholeOf(st.st, st))
				ctx := context.Background()
				editor := x.user(console.User{Name: "editor", Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Operator}})
				writer := x.user(console.User{Name: "writer", Apps: map[string]console.Role{"billing": console.Editor}, Scripts: true})
				parent := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Key: "parent", Name: "parent", Handler: "work"}))
				script := must1(x.s.AddJob(ctx, xxljob.Job{App: "billing", Key: "script", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "eval $1"}))
				st.meet = true
				var both sync.WaitGroup
				both.Go(func() {
					if fields := map[string]string{"childkeys": "billing/later", "childparam": "PARENT", "name": "parent"}; adds {
						editor.gives("editor").add(fields)
					} else {
						editor.gives("editor").save(parent, fields)
					}
				})
				both.Go(func() { writer.gives("writer").save(script, map[string]string{"key": "later"}) })
				both.Wait()
				st.meet = false
				leads := slices.ContainsFunc(must1(x.store.Links(ctx)), func(j store.Job) bool { return j.ChildParam != "" })
				if _, err := x.store.JobByKey(ctx, "billing", "later"); leads && err == nil {
					t.Errorf("%s first: both are stored", first)
				}
				if st.stored != 2 {
					t.Errorf("%s first: %d were stored before they were looked at again: %s %s", first, st.stored, editor.text(), writer.text())
				}
			})
		}
	}
}

// meeting is a store in which two definitions wait for each other before they are stored: that of
// the one that is to be first, and a second later the other one.
type meeting struct {
	st     Store
	first  string // "parent" or "script"
	meet   bool
	mu     sync.Mutex
	come   int // guarded by mu
	stored int // guarded by mu
	met    chan struct{}
}

func (m *meeting) wait(name string) {
	if !m.meet {
		return
	}
	m.mu.Lock()
	if m.come++; m.come == 2 {
		close(m.met)
	}
	late := m.come > 2
	m.mu.Unlock()
	if late {
		return
	}
	select {
	case <-m.met:
	case <-time.After(5 * time.Second): // the other one was refused at once, which fails the test
		return
	}
	if name != m.first {
		time.Sleep(time.Second)
	}
	m.mu.Lock()
	m.stored++
	m.mu.Unlock()
}

func (m *meeting) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	if j, err := m.st.Job(ctx, id); err == nil {
		m.wait(j.Name)
	}
	return m.st.EditJob(ctx, id, e)
}

func (m *meeting) AddJob(ctx context.Context, j store.Job, next store.FirstInstant) (store.Job, error) {
	m.wait("parent")
	return m.st.AddJob(ctx, j, next)
}

// TestHiddenGoesToNoOtherApp: by none of the ways by which a caller may have a secret job's parameter or
// result handed on does a job of another app get it, whoever calls; a secret job of the same app gets it.
func TestHiddenGoesToNoOtherApp(t *testing.T) {
	ctx := context.Background()
	for _, by := range []xxljob.ChildParam{xxljob.ChildParamParent, xxljob.ChildParamResult} {
		synctest.Test(t, func(t *testing.T) {
			x := newSite(t)
			must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
				task.SetResult("canary result of " + task.Param)
				return nil
			}))
			must(t, x.s.Start(ctx))
			defer func() { _ = x.s.Stop(ctx) }()
			n := 0
			add := func(app string, secret bool, children ...int64) xxljob.Job {
				n++
				key := fmt.Sprint("j", n)
				j := xxljob.Job{App: app, Key: key, Name: key, Handler: "work", Param: "own", Secret: secret, Children: children}
				if len(children) > 0 {
					j.ChildParam = by
				}
				return must1(x.s.AddJob(ctx, j))
			}
			settle := func() { time.Sleep(10 * time.Second) }
			given := func(j xxljob.Job) int64 {
				id := must1(x.s.TriggerOne(ctx, j.ID, xxljob.Trigger{Param: new("canary given")}))
				settle()
				return id
			}
			runsOf := func(j xxljob.Job) []xxljob.Run {
				return must1(x.store.Runs(ctx, xxljob.RunFilter{JobID: j.ID, Limit: 100}))
			}
			for _, who := range x.givers() {
				elsewhere := add("billing", true)
				between := add("orders", true, elsewhere.ID)
				parent := add("orders", true, elsewhere.ID, between.ID)
				for _, way := range []struct {
					name string
					try  func()
				}{
					{"run once", func() { who.once(parent.ID, "canary given") }},
					{"run again", func() { who.again(given(parent)) }},
					{"run the child again", func() { given(parent); who.again(runsOf(between)[0].ID) }},
					{"when its parents are deleted", func() {
						given(parent)
						run := runsOf(between)[0].ID
						must1(x.store.(store.RunDropper).DropEnded(ctx, store.RunDrop{All: true, JobIDs: []int64{parent.ID}}))
						who.again(run)
					}},
					{"lead to it", func() {
						who.save(parent, map[string]string{"name": parent.Name, "children": fmt.Sprint(elsewhere.ID), "childparam": string(by), "param": "canary edited"})
						settle()
						must1(x.s.Trigger(ctx, parent.ID, xxljob.Trigger{}))
					}},
				} {
					way.try()
					settle()
					for _, r := range runsOf(elsewhere) {
						if strings.Contains(r.Param, "canary") {
							t.Fatalf("%s, %s, %s: a job of another app is given %q", by, who.name, way.name, r.Param)
						}
					}
				}
				if !slices.ContainsFunc(runsOf(between), func(r xxljob.Run) bool { return strings.Contains(r.Param, "canary") }) {
					t.Errorf("%s, %s: a secret job of the same app is given nothing", by, who.name)
				}
			}
		})
	}
}

// TestWhatIsHandedOnStaysHidden: whoever edits whichever end of a link, no page and no search shows, in a
// run of a job that is not secret, the parameter or the result of one that is.
func TestWhatIsHandedOnStaysHidden(t *testing.T) {
	ctx := context.Background()
	for _, by := range []xxljob.ChildParam{xxljob.ChildParamParent, xxljob.ChildParamResult} {
		synctest.Test(t, func(t *testing.T) {
			x := newSite(t)
			must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
				task.SetResult("result of " + task.Param)
				return nil
			}))
			must(t, x.s.Start(ctx))
			defer func() { _ = x.s.Stop(ctx) }()
			viewers := []*browser{x.admin(), x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})}
			n := 0
			add := func(secret bool, children ...int64) xxljob.Job {
				n++
				key := fmt.Sprint("j", n)
				j := xxljob.Job{App: "orders", Key: key, Name: key, Handler: "work", Param: "own", Secret: secret, Children: children}
				if len(children) > 0 {
					j.ChildParam = by
				}
				return must1(x.s.AddJob(ctx, j))
			}
			for _, who := range x.givers() {
				for way, link := range map[string]func() (parent, child xxljob.Job){
					"lead to it by its id": func() (parent, child xxljob.Job) {
						parent, child = add(true), add(false)
						who.save(parent, map[string]string{"children": fmt.Sprint(child.ID), "childparam": string(by), "param": ""})
						return parent, child
					},
					"lead to it by its key": func() (parent, child xxljob.Job) {
						parent, child = add(true), add(false)
						who.save(parent, map[string]string{"childkeys": "orders/" + child.Key, "childparam": string(by), "param": ""})
						return parent, child
					},
					"lead to what leads to it": func() (parent, child xxljob.Job) {
						child = add(false)
						parent = add(true)
						who.save(parent, map[string]string{"children": fmt.Sprint(add(true, child.ID).ID), "childparam": string(by), "param": ""})
						return parent, child
					},
					"take the mark from the child": func() (parent, child xxljob.Job) {
						child = add(true)
						parent = add(true, child.ID)
						who.save(child, map[string]string{"secret": "", "name": child.Name})
						return parent, child
					},
					"give the mark to the parent": func() (parent, child xxljob.Job) {
						child = add(false)
						parent = add(false, child.ID)
						who.save(parent, map[string]string{"secret": "on", "name": parent.Name})
						return parent, child
					},
				} {
					parent, child := link()
					parent, child = must1(x.store.Job(ctx, parent.ID)), must1(x.store.Job(ctx, child.ID))
					if !parent.Secret {
						continue // the caller may not say so
					}
					must1(x.s.Trigger(ctx, parent.ID, xxljob.Trigger{Param: new("canary given")}))
					who.once(parent.ID, "canary of the caller")
					time.Sleep(10 * time.Second)
					for _, b := range viewers {
						for _, r := range must1(x.store.Runs(ctx, xxljob.RunFilter{JobID: child.ID, Limit: 100})) {
							for _, page := range []string{fmt.Sprintf("runs/%d", r.ID), fmt.Sprintf("jobs/%d", child.ID), fmt.Sprintf("runs?job=%d", child.ID)} {
								if strings.Contains(b.get(page).is(200).body, "canary") {
									t.Errorf("%s, %s, %s: %s shows what the child was given: %s", by, who.name, way, page, b.text())
								}
							}
							for _, text := range []string{"canary given", "canary of the caller"} {
								b.get("runs?" + url.Values{"text": {text}, "job": {fmt.Sprint(child.ID)}}.Encode()).is(200)
								if strings.Contains(b.body, fmt.Sprintf(`runs/%d"`, r.ID)) && !child.Secret {
									t.Errorf("%s, %s, %s: a search for %q finds the run of the child", by, who.name, way, text)
								}
							}
						}
					}
				}
			}
		})
	}
}
