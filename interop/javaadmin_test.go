package interop_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// reports are the results of our executor.
type reports struct {
	mu      sync.Mutex
	results map[int64]wire.CallbackRequest // guarded by mu
}

func (r *reports) Callback(_ context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range results {
		r.results[one.LogID] = one
	}
	return wire.Success(), nil
}

func (r *reports) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (r *reports) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// of waits for the result of a run.
func (r *reports) of(t *testing.T, run int64) wire.CallbackRequest {
	t.Helper()
	var got wire.CallbackRequest
	eventually(t, 10*time.Second, fmt.Sprintf("a result of run %d", run), func() (ok bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		got, ok = r.results[run]
		return ok
	})
	return got
}

// ourExecutor serves an executor of ours below a prefix and returns its address.
func ourExecutor(t *testing.T) (address string, results *reports) {
	t.Helper()
	e, err := executor.New(executor.Config{App: theApp, Log: executor.LogConfig{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	results = &reports{results: map[int64]wire.CallbackRequest{}}
	e.Bind(results)
	handlers := map[string]executor.Handler{
		"echo": func(_ context.Context, task *executor.Task) error {
			task.Log().Info(task.Param)
			task.SetResult(fmt.Sprintf("%d/%d %s", task.ShardIndex, task.ShardTotal, task.Param))
			return nil
		},
		"sleep": func(ctx context.Context, task *executor.Task) error {
			ms, err := strconv.Atoi(task.Param)
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
	}
	for name, fn := range handlers {
		if err := e.Handle(name, fn); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{theApp: {theToken}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := wire.NewExecutorHandler(e, wire.HandlerConfig{Authorize: keys.Authorize})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/jobs/", h)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return srv.URL + "/jobs/", results
}

// TestJavaAdmins has our executor called by the admin's client of each Java
// version, which is pickier than it looks: see XXL-JOB section 1.1.
func TestJavaAdmins(t *testing.T) {
	for _, k := range javaVersions(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			address, results := ourExecutor(t)
			d := newDriver(t, k.name, address)
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
				for _, wrong.token = range []string{"wrong", ""} {
					wrong.refused("beat", nil, wire.MsgTokenWrong)
					wrong.refused("run", request("echo", ""), wire.MsgTokenWrong)
					wrong.refused("log", wire.LogRequest{LogID: 1}, wire.MsgTokenWrong)
				}
			})
			t.Run("run", func(t *testing.T) {
				d := d.with(t)
				for _, param := range []string{awkward, ""} {
					req := request("echo", param)
					d.ok("run", req)
					want := wire.CallbackRequest{LogID: req.LogID, LogDateTim: req.LogDateTime, HandleCode: wire.CodeSuccess, HandleMsg: "1/3 " + param}
					if got := results.of(t, req.LogID); got != want {
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
					got := results.of(t, run)
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
				if got := results.of(t, early.LogID); got.HandleCode != wire.CodeFail || !strings.Contains(got.HandleMsg, block.MsgCover) {
					t.Errorf("covered: %+v", got)
				}
				if got := results.of(t, late.LogID); got.HandleCode != wire.CodeTimeout || got.HandleMsg != wire.MsgTimeout {
					t.Errorf("over time: %+v", got)
				}
			})
			t.Run("log", func(t *testing.T) {
				d := d.with(t)
				req := request("echo", "first 中文 <line>\nsecond line")
				d.ok("run", req)
				results.of(t, req.LogID)
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
		})
	}
}
