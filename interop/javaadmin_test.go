package interop_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// ourExecutor serves an executor of ours, in one of two ways, and returns the address
// that it has registered with an admin. By itself it works for that admin only; mounted
// in a mux of the host's, below a prefix, for another one as well.
func ourExecutor(t *testing.T, a *admin, byItself bool) (address string) {
	t.Helper()
	cfg := executor.Config{App: theApp, Log: executor.LogConfig{Dir: t.TempDir()}, SpoolDir: t.TempDir()}
	mine := executor.AdminCluster{Addresses: []string{"http://" + a.addr + "/xxl-job-admin"}, Token: theToken}
	mux := http.NewServeMux()
	if byItself {
		cfg.Addr, cfg.Admins = "127.0.0.1:0", []executor.AdminCluster{mine}
	} else {
		host := httptest.NewServer(mux)
		t.Cleanup(host.Close)
		mine.Name = "java"
		nobody := executor.AdminCluster{Name: "nobody", Addresses: []string{host.URL + "/nobody"}, Token: "another-secret"}
		cfg.Address, cfg.Admins = host.URL+"/jobs/", []executor.AdminCluster{nobody, mine}
	}
	e, err := executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	handlers := map[string]executor.Handler{
		"echo": func(_ context.Context, task *executor.Task) error {
			task.Log().Info(task.Param)
			task.SetResult(fmt.Sprintf("%d/%d %s", task.ShardIndex, task.ShardTotal, task.Param))
			return nil
		},
		"sleep": func(ctx context.Context, task *executor.Task) error { return ourPause(ctx, task.Param) },
	}
	for name, fn := range handlers {
		if err := e.Handle(name, fn); err != nil {
			t.Fatal(err)
		}
	}
	if !byItself {
		h, err := e.HTTPHandler()
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/jobs/", h)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		if left := a.left(); len(left) != 1 || left[0] != address {
			t.Errorf("taken back are %q, want %q", left, address)
		}
	})
	eventually(t, time.Minute, "the executor registers", func() bool { return len(a.asked("registry")) > 0 })
	var reg wire.RegistryRequest
	if err := reg.Decode([]byte(a.asked("registry")[0].body)); err != nil {
		t.Fatal(err)
	}
	if want := cfg.Address + "java/"; !byItself && reg.RegistryValue != want {
		t.Errorf("registered %q, want %q", reg.RegistryValue, want)
	}
	return reg.RegistryValue
}

// reportOf waits for the result of a run.
func reportOf(t *testing.T, a *admin, run int64) wire.CallbackRequest {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("a result of run %d", run), func() bool { return len(a.resultsOf(run)) > 0 })
	return a.resultsOf(run)[0].CallbackRequest
}

// TestJavaAdmins has our executor called by the admin's client of each Java
// version, which is pickier than it looks: see docs/xxl-job.md, headers.
func TestJavaAdmins(t *testing.T) {
	t.Parallel()
	for _, k := range javaVersions(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, k.name)
			for name, byItself := range map[string]bool{"server": true, "handler": false} {
				t.Run(name, func(t *testing.T) {
					a := newAdmin(t)
					calls(t, k, d.of(ourExecutor(t, a, byItself)), a)
				})
			}
		})
	}
}

// turnsAway is what a caller of this kind is told because of a wrong token.
func (k kind) turnsAway() map[string]string {
	if k.identity {
		return map[string]string{"wrong": wire.MsgIdentityInvalid, "": wire.MsgIdentityEmpty}
	}
	return map[string]string{"wrong": wire.MsgTokenWrong, "": wire.MsgTokenWrong}
}

// truncates sends runs, and others with their ids and later dates, as an admin does
// whose table of runs was truncated: all run, and none that is sent again as it was.
func truncates(t *testing.T, d *driver, a *admin, request func(handler, param string) wire.TriggerRequest) {
	const n = 25
	var sent []wire.TriggerRequest
	for range n {
		sent = append(sent, request("echo", "before"))
	}
	for _, req := range sent[:n] {
		again := req
		again.LogDateTime += time.Minute.Milliseconds()
		again.ExecutorParams = "after"
		sent = append(sent, again)
	}
	for _, req := range sent {
		d.ok("run", req)
		d.ok("run", req)
	}
	missing := func() (runs []string) {
		for _, req := range sent {
			if !slices.ContainsFunc(a.resultsOf(req.LogID), func(r result) bool { return r.LogDateTim == req.LogDateTime }) {
				runs = append(runs, fmt.Sprintf("%d %s", req.LogID, req.ExecutorParams))
			}
		}
		return runs
	}
	for end := time.Now().Add(time.Minute); len(missing()) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if lost := missing(); len(lost) > 0 {
		t.Errorf("%d of %d runs that were accepted have no result: %v", len(lost), len(sent), lost)
	}
	// Behind them all, a last one: whatever ran twice would be reported by then.
	last := sent[len(sent)-1]
	last.LogID, last.LogDateTime = last.LogID+1<<20, last.LogDateTime+1
	d.ok("run", last)
	reportOf(t, a, last.LogID)
	for _, req := range sent {
		var texts []string
		for _, r := range a.resultsOf(req.LogID) {
			if r.LogDateTim == req.LogDateTime {
				texts = append(texts, r.HandleMsg)
			}
		}
		if want := []string{"1/3 " + req.ExecutorParams}; len(texts) > 0 && !slices.Equal(texts, want) {
			t.Errorf("run %d of %d has the results %q, want %q", req.LogID, req.LogDateTime, texts, want)
		}
	}
}

// calls calls all that an executor serves.
func calls(t *testing.T, k kind, d *driver, a *admin) {
	id := int64(1000)
	request := func(handler, param string) wire.TriggerRequest {
		id++
		return wire.TriggerRequest{
			JobID: id, LogID: 1<<40 + id, LogDateTime: time.Now().UnixMilli(),
			ExecutorHandler: handler, ExecutorParams: param, ExecutorBlockStrategy: "SERIAL_EXECUTION",
			GlueType: wire.GlueBean, GlueUpdatetime: 1600000000000, BroadcastIndex: 1, BroadcastTotal: 3,
		}
	}

	t.Run("beat", func(t *testing.T) { d.with(t).ok("beat", nil) })
	t.Run("wrong token", func(t *testing.T) {
		wrong := *d.with(t)
		for token, text := range k.turnsAway() {
			wrong.token = token
			wrong.refused("beat", nil, text)
			wrong.refused("run", request("echo", ""), text)
			wrong.refused("log", wire.LogRequest{LogID: 1}, text)
		}
		if k.identity {
			wrong.token, wrong.app = theToken, "another-app"
			wrong.refused("beat", nil, wire.MsgIdentityInvalid)
		}
	})
	t.Run("run", func(t *testing.T) {
		d := d.with(t)
		for _, param := range []string{awkward, ""} {
			req := request("echo", param)
			d.ok("run", req)
			want := wire.CallbackRequest{LogID: req.LogID, LogDateTim: req.LogDateTime, HandleCode: wire.CodeSuccess, HandleMsg: "1/3 " + param, Exact: true}
			if got := reportOf(t, a, req.LogID); got != want {
				t.Errorf("result %+v, want %+v", got, want)
			}
		}
		long := request("echo", strings.Repeat("x", 512<<10))
		d.ok("run", long)
		d.refused("run", request("nobody", ""), "job handler [nobody] not found.")
		script := request("echo", "")
		script.GlueType, script.GlueSource = "GLUE_SHELL", "echo no"
		d.refused("run", script, "glueType[GLUE_SHELL] is not valid.")
	})
	t.Run("ids begin anew", func(t *testing.T) { truncates(t, d.with(t), a, request) })
	t.Run("idle beat, block and kill", func(t *testing.T) {
		d := d.with(t)
		req := request("sleep", forever)
		d.ok("idleBeat", wire.IdleBeatRequest{JobID: req.JobID})
		d.ok("run", req)
		d.ok("run", req) // a resend changes nothing
		d.refused("idleBeat", wire.IdleBeatRequest{JobID: req.JobID}, wire.MsgBusy)
		late := req
		late.LogID, late.ExecutorBlockStrategy = req.LogID+1000, "DISCARD_LATER"
		d.refused("run", late, block.MsgDiscard)
		queued := req
		queued.LogID += 2000
		d.ok("run", queued)
		d.ok("kill", wire.KillRequest{JobID: req.JobID})
		for run, msg := range map[int64]string{req.LogID: wire.MsgKilledRunning, queued.LogID: wire.MsgKilledQueued} {
			got := reportOf(t, a, run)
			if want := fmt.Sprintf(msg, wire.StopKill); got.HandleCode != wire.CodeFail || got.HandleMsg != want {
				t.Errorf("result %+v, want %q", got, want)
			}
		}
		var note string
		a := d.ok("kill", wire.KillRequest{JobID: req.JobID})
		a.payload(t, &note)
		if note != wire.MsgAlreadyKilled || a.Msg != wire.MsgAlreadyKilled {
			t.Errorf("kill of nothing: %+v, want the note %q", a, wire.MsgAlreadyKilled)
		}
	})
	t.Run("cover early and timeout", func(t *testing.T) {
		d := d.with(t)
		early := request("sleep", forever)
		d.ok("run", early)
		late := early
		late.LogID, late.ExecutorBlockStrategy, late.ExecutorTimeout = early.LogID+1000, "COVER_EARLY", 1
		d.ok("run", late)
		if got := reportOf(t, a, early.LogID); got.HandleCode != wire.CodeFail || !strings.Contains(got.HandleMsg, block.MsgCover) {
			t.Errorf("covered: %+v", got)
		}
		if got := reportOf(t, a, late.LogID); got.HandleCode != wire.CodeTimeout || got.HandleMsg != wire.MsgTimeout {
			t.Errorf("over time: %+v", got)
		}
	})
	t.Run("log", func(t *testing.T) {
		d := d.with(t)
		req := request("echo", "first 中文 <line>\nsecond line")
		d.ok("run", req)
		reportOf(t, a, req.LogID)
		var got, behind, none wire.LogResult
		at := req.LogDateTime / 1000 * 1000 // a column of whole seconds
		d.ok("log", wire.LogRequest{LogDateTim: at, LogID: req.LogID, FromLineNum: 1}).payload(t, &got)
		if got.FromLineNum != 1 || got.ToLineNum < 1 || !strings.Contains(got.LogContent, "first 中文 <line>") || !strings.Contains(got.LogContent, "second line") {
			t.Errorf("the log is %+v", got)
		}
		d.ok("log", wire.LogRequest{LogDateTim: at, LogID: req.LogID, FromLineNum: got.ToLineNum + 1}).payload(t, &behind)
		if behind.LogContent != "" || behind.FromLineNum <= behind.ToLineNum {
			t.Errorf("behind the end: %+v, want nothing, and fromLineNum greater than toLineNum", behind)
		}
		d.ok("log", wire.LogRequest{LogDateTim: at, LogID: 1, FromLineNum: 1}).payload(t, &none)
		if none.LogContent != wire.MsgNoLog {
			t.Errorf("of an unknown run: %+v", none)
		}
	})
}
