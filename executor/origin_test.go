package executor_test

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// Two clusters and the scheduler in the process, with the same ids.
func threeAdmins(t *testing.T, cfg executor.Config) (e *executor.Executor, own *admin, one, two *node) {
	t.Helper()
	a := admins{}
	one, two = newNode(), newNode()
	cfg.Admins = []executor.AdminCluster{a.cluster("one", one), a.cluster("two", two)}
	e = over(t, a, cfg)
	own = new(admin)
	e.Bind(own)
	return e, own, one, two
}

// everyone are the three as callers.
func everyone(e *executor.Executor) map[string]wire.Executor {
	return map[string]wire.Executor{"": e, "one": e.As("one"), "two": e.As("two")}
}

func TestIdsOfAdminsCollide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, own, one, two := threeAdmins(t, executor.Config{})
		running := map[string]bool{}
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			task.SetResult(task.Param)
			running[task.Param] = true
			time.Sleep(time.Minute)
			return nil
		})
		start(t, e)
		for name, as := range everyone(e) {
			r := req(7, 1)
			r.ExecutorParams = "of " + name
			if ret, _ := as.Run(t.Context(), r); ret != wire.Success() {
				t.Errorf("run of %q: %+v", name, ret)
			}
			if ret, _ := as.Run(t.Context(), r); ret != wire.Noted(wire.MsgRepeat, 1) {
				t.Errorf("repeated run of %q: %+v", name, ret)
			}
			synctest.Wait() // they start one after the other, and all run at once
		}
		if len(running) != 3 || e.Running() != 3 {
			t.Errorf("%v run", running)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for name, got := range map[string]*admin{"": own, "one": &one.admin, "two": &two.admin} {
			if res := got.results(); len(res) != 1 || res[0].HandleMsg != "of "+name || res[0].LogID != 1 {
				t.Errorf("results of %q: %+v", name, res)
			}
			if ret, _ := everyone(e)[name].Run(t.Context(), req(7, 1)); ret != wire.Noted(wire.MsgRepeatEnded, 1) {
				t.Errorf("ended run of %q: %+v", name, ret)
			}
		}
		mustGive(t, e, "one", req(7, 2))
		if ret, _ := e.As("two").IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); !ret.OK() {
			t.Error("a job is busy for another admin")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	})
}

func TestKillAndIdleBeatPerAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, own, one, two := threeAdmins(t, executor.Config{})
		handle(t, e, "h", untilDone)
		start(t, e)
		for _, as := range everyone(e) {
			for id := range int64(3) {
				if ret, _ := as.Run(t.Context(), req(7, id+1)); !ret.OK() {
					t.Fatal(ret)
				}
			}
		}
		if ret, _ := e.As("one").Kill(t.Context(), wire.KillRequest{JobID: 7}); ret != wire.Success() {
			t.Errorf("kill: %+v", ret)
		}
		if ret, _ := e.As("two").Kill(t.Context(), wire.KillRequest{JobID: 7, LogID: 2}); ret != (wire.Return{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, BootID: e.Boot()}) {
			t.Errorf("kill of one run: %+v", ret)
		}
		time.Sleep(time.Second) // results that come together travel together
		synctest.Wait()
		if a, b, c := len(one.ids()), two.ids(), len(own.ids()); a != 3 || !slices.Equal(b, []int64{2}) || c != 0 {
			t.Errorf("ended: %d, %v, %d", a, b, c)
		}
		for name, busy := range map[string]bool{"": true, "one": false, "two": true} {
			if ret, _ := everyone(e)[name].IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); ret.OK() == busy {
				t.Errorf("idle beat of %q: %+v", name, ret)
			}
		}
		if ret, _ := e.As("one").Kill(t.Context(), wire.KillRequest{JobID: 7}); ret != wire.Noted(wire.MsgAlreadyKilled) {
			t.Errorf("second kill: %+v", ret)
		}
		for _, as := range everyone(e) { // let Stop be quick
			_, _ = as.Kill(t.Context(), wire.KillRequest{JobID: 7})
		}
	})
}

// The same run id logs to three places, in memory and in files.
func TestLogsPerAdmin(t *testing.T) {
	for _, inFiles := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := executor.Config{}
			if inFiles {
				cfg.Log.Dir = t.TempDir()
			}
			e, _, _, _ := threeAdmins(t, cfg)
			handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
				task.Log().Info("of " + task.Param)
				return nil
			})
			start(t, e)
			for name, as := range everyone(e) {
				if name == "two" {
					continue
				}
				r := req(7, 1)
				r.ExecutorParams, r.LogDateTime = name, time.Now().UnixMilli()
				if ret, _ := as.Run(t.Context(), r); !ret.OK() {
					t.Fatal(ret)
				}
			}
			synctest.Wait()
			for name, want := range map[string]string{
				"": "2000-01-01 00:00:00 INFO of \n", "one": "2000-01-01 00:00:00 INFO of one\n", "two": wire.MsgNoLog,
			} {
				ret, err := everyone(e)[name].Log(t.Context(), wire.LogRequest{LogID: 1, LogDateTim: time.Now().UnixMilli(), FromLineNum: 1})
				if err != nil || ret.Result.LogContent != want || ret.Result.IsEnd != (name == "two") {
					t.Errorf("log of %q: %+v, %v", name, ret, err)
				}
			}
			if !inFiles {
				return
			}
			var found []string
			_ = filepath.WalkDir(cfg.Log.Dir, func(p string, d fs.DirEntry, err error) error {
				if rel, _ := filepath.Rel(cfg.Log.Dir, p); err == nil && !d.IsDir() {
					found = append(found, filepath.ToSlash(rel))
				}
				return err
			})
			if want := []string{"2000-01-01/1-946684800.log", "one/2000-01-01/1-946684800.log"}; !slices.Equal(found, want) {
				t.Errorf("files are %q, want %q", found, want)
			}
		})
	}
}

// The logs of all admins in memory have one bound together.
func TestLogMemoryOfAllAdmins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, _, _ := threeAdmins(t, executor.Config{Log: executor.LogConfig{TotalBytes: 600}})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.Log().Info("x"); return nil })
		start(t, e)
		for _, name := range []string{"one", "two", "one"} {
			mustGive(t, e, name, req(1, int64(len(name))*1000+time.Now().UnixNano()%1000))
			synctest.Wait()
			time.Sleep(time.Nanosecond)
		}
		if ret, _ := e.As("one").Log(t.Context(), wire.LogRequest{LogID: 3000}); ret.Result.LogContent != wire.MsgNoLog {
			t.Errorf("the oldest log is there: %+v", ret)
		}
		if ret, _ := e.As("two").Log(t.Context(), wire.LogRequest{LogID: 3001}); ret.Result.ToLineNum != 1 {
			t.Errorf("a younger one is not: %+v", ret)
		}
	})
}

// One admin that is away is no reason to refuse the runs of another.
func TestOutboxPerAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, own, one, two := threeAdmins(t, executor.Config{Outbox: 1})
		handle(t, e, "h", noop)
		start(t, e)
		one.set(true)
		mustGive(t, e, "one", req(1, 1))
		synctest.Wait()
		wantRefused(t, give(t, e, "one", req(1, 2)), "executor is full: 1 results are running or wait for the admin.")
		mustGive(t, e, "two", req(1, 2))
		mustSend(t, e, req(1, 2))
		synctest.Wait()
		if len(own.ids()) != 1 || len(two.ids()) != 1 {
			t.Errorf("results %v and %v", own.ids(), two.ids())
		}
		one.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		mustGive(t, e, "one", req(1, 2))
	})
}

// A run that names another boot id is not for this process.
func TestForeignBootID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		one := newNode()
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("", one)}})
		a["admin"] = a[""] // its default name
		runs := 0
		handle(t, e, "h", func(context.Context, *executor.Task) error { runs++; return nil })
		start(t, e)
		synctest.Wait()
		r := req(1, 1)
		r.BootID = "of another life"
		wantRefused(t, give(t, e, "admin", r), wire.MsgOtherBoot)
		r.BootID = one.beats()[0].req.BootID
		mustGive(t, e, "admin", r)
		r.BootID = "of another life" // also of what is known here
		wantRefused(t, give(t, e, "admin", r), wire.MsgOtherBoot)
		r.StartToken = 1 // a scheduler of ours is told which process it has called
		if ret := give(t, e, "admin", r); ret.OK() || ret.Msg != wire.MsgOtherBoot || ret.BootID != e.Boot() {
			t.Errorf("%+v", ret)
		}
		synctest.Wait()
		if runs != 1 || len(one.ids()) != 1 {
			t.Errorf("%d runs, results %v", runs, one.ids())
		}
	})
}
