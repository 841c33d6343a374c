package xxljobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// resultsAgain is how long an executor waits before it reports a refused result again.
const resultsAgain = 30 * time.Second

// ReportTo sets the handler that results are sent to: that of a scheduler's admin side. It
// replaces an earlier one, and registers nothing; it is for the executors of manual groups. To
// report to another process, pass an httputil.ReverseProxy.
func (e *Executor) ReportTo(admin http.Handler) {
	e.t.Helper()
	if admin == nil {
		e.t.Fatalf("xxljobtest: executor of app %q: ReportTo: the admin is nil", e.o.App)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.admin = admin
}

// Report sends the result of a run to the scheduler: wire.CodeSuccess, wire.CodeFail,
// wire.CodeTimeout or any other code, and a text. It returns once the scheduler has
// acknowledged it. The test fails if the scheduler does not, if the executor was never asked
// for the run, is closed, or has no scheduler to report to.
//
// A result that the run's Answer had yet to report is dropped. Runs that have ended or were
// refused can be reported too; the scheduler decides what to make of it.
func (e *Executor) Report(runID int64, code int, msg string) {
	e.t.Helper()
	run := e.asked("Report", runID)
	if !e.begin() {
		e.t.Fatalf("xxljobtest: executor of app %q: Report: run %d: the executor is closed", e.o.App, runID)
	}
	defer e.work.Done()
	e.end(func(o *openRun) bool { return o.LogID == runID })
	if err := e.post(e.t.Context(), "callback", e.o.Generation.callback(run, code, msg)); err != nil {
		e.t.Fatalf("xxljobtest: executor of app %q: Report: run %d: %v", e.o.App, runID, err)
	}
}

// asked returns the latest run with an id. The test fails if there is none.
func (e *Executor) asked(what string, runID int64) ExecutorRun {
	e.t.Helper()
	e.mu.Lock()
	runs := e.runs
	e.mu.Unlock()
	ids := make([]string, len(runs))
	for i, r := range slices.Backward(runs) {
		if r.LogID == runID {
			return r
		}
		ids[i] = fmt.Sprint(r.LogID)
	}
	e.t.Fatalf("xxljobtest: executor of app %q: %s: run %d: it was never asked for it, but for [%s]", e.o.App, what, runID, strings.Join(ids, " "))
	return ExecutorRun{}
}

// reportLater starts reporting the result of a run when it is due, unless the run ends before.
func (e *Executor) reportLater(o *openRun, a Answer) {
	if a.result.code == 0 || !e.begin() {
		return
	}
	go func() { // Close waits for it
		defer e.work.Done()
		timer := time.NewTimer(a.after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-o.ended: // by a kill, or by the test
			return
		case <-e.ctx.Done():
			return
		}
		if e.endOnly(o) {
			e.deliverNow(o.ExecutorRun, a.result)
		}
	}()
}

// deliver starts reporting a result.
func (e *Executor) deliver(run ExecutorRun, res result) {
	if !e.begin() {
		return
	}
	go func() { // Close waits for it
		defer e.work.Done()
		e.deliverNow(run, res)
	}()
}

// errNoAdmin is the error of an executor without anybody to report to.
var errNoAdmin = errors.New("no scheduler is known: call Register, or ReportTo")

// deliverNow reports a result, again and again until it is acknowledged, as real executors do.
func (e *Executor) deliverNow(run ExecutorRun, res result) {
	body := e.o.Generation.callback(run, res.code, res.msg)
	for {
		err := e.post(e.ctx, "callback", body)
		switch {
		case err == nil || e.ctx.Err() != nil:
			return
		case errors.Is(err, errNoAdmin):
			e.t.Errorf("xxljobtest: executor of app %q: the result of run %d: %v", e.o.App, run.LogID, err)
			return
		}
		e.logf("the result of run %d, which comes again in %v: %v", run.LogID, resultsAgain, err)
		if !e.sleep(resultsAgain) {
			return
		}
	}
}

// post sends a request to the admin. Any answer but code 200 is an error.
func (e *Executor) post(ctx context.Context, endpoint string, body []byte) error {
	e.mu.Lock()
	admin := e.admin
	e.mu.Unlock()
	if admin == nil {
		return errNoAdmin
	}
	path := e.o.Generation.api() + endpoint
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://scheduler.test"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = e.o.Generation.headers(e.o.App, e.o.Token)
	req.RequestURI, req.RemoteAddr = path, e.url.Host
	w := response{status: http.StatusOK, header: http.Header{}}
	admin.ServeHTTP(&w, req)
	if w.status != http.StatusOK {
		return fmt.Errorf("HTTP status %d", w.status)
	}
	var ret wire.Return
	if err := ret.Decode(w.body.Bytes()); err != nil {
		return err
	}
	if !ret.OK() {
		return fmt.Errorf("refused with code %d: %s", ret.Code, ret.Msg)
	}
	return nil
}

// response records the answer of a handler.
type response struct {
	status int
	header http.Header
	body   bytes.Buffer
}

var _ io.Writer = (*response)(nil)

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }
