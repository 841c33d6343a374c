package xxljob_test

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/wire"
)

// TestResultOfAnotherLife: an id that was given before, by a process whose ids began at 1
// too, or before a database was emptied, must not get the result of that run. Only where
// the executor is known to send the date of the trigger its result is refused for it.
func TestResultOfAnotherLife(t *testing.T) {
	java := http.Header{"User-Agent": {"Java/17.0.2"}, "Accept-Charset": {"UTF-8"}}
	python := http.Header{"User-Agent": {"Python/3.12 aiohttp/3.14.5"}}
	day := (24 * time.Hour).Milliseconds()
	for _, c := range []struct {
		name    string
		header  http.Header
		exact   bool
		form    wire.CallbackForm
		date    func(own int64) int64
		refused bool
	}{
		{"ours", nil, true, wire.CallbackList, func(own int64) int64 { return own }, false},
		{"ours, earlier", nil, true, wire.CallbackList, func(own int64) int64 { return own - 1 }, true},
		{"ours, to a G4 admin", nil, true, wire.CallbackObject, func(own int64) int64 { return own - day }, true},
		{"ours, without a date", nil, true, wire.CallbackList, func(int64) int64 { return 0 }, false},
		{"ours, year 10000", nil, true, wire.CallbackList, func(int64) int64 { return 253402300800000 }, true},
		{"ours, at the end of time", nil, true, wire.CallbackList, func(int64) int64 { return math.MaxInt64 }, true},
		{"ours, below 0", nil, true, wire.CallbackList, func(int64) int64 { return -1 }, true},
		{"Java", java, false, wire.CallbackList, func(own int64) int64 { return own }, false},
		{"Java, earlier", java, false, wire.CallbackList, func(own int64) int64 { return own - day }, true},
		{"Java of G4, earlier", java, false, wire.CallbackObject, func(own int64) int64 { return own - day }, true},
		{"Java, below 0", java, false, wire.CallbackList, func(int64) int64 { return math.MinInt64 }, true},
		{"Java, without a date", java, false, wire.CallbackList, func(int64) int64 { return 0 }, false},
		{"Python, with its own date", python, false, wire.CallbackList, func(own int64) int64 { return own + 7 }, false},
		{"unknown, another date", nil, false, wire.CallbackList, func(own int64) int64 { return own - day }, false},
		{"unknown, year 10000", nil, false, wire.CallbackList, func(int64) int64 { return 253402300800000 }, false},
		{"unknown, below 0", nil, false, wire.CallbackObject, func(int64) int64 { return math.MinInt64 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: {}})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				own := e.mustBe(id, xxljob.StateDispatched).Created.UnixMilli()
				if sent := e.peers[at1].sent(); len(sent) != 1 || sent[0].LogDateTime != own {
					t.Fatalf("sent %+v", sent)
				}
				body := wire.EncodeCallback(nil, c.form, []wire.CallbackRequest{{LogID: id, LogDateTim: c.date(own), HandleCode: 200, HandleMsg: "done", Exact: c.exact}})
				req := httptest.NewRequest(http.MethodPost, "/api/callback", bytes.NewReader(body))
				if c.header != nil {
					req.Header = c.header.Clone()
				}
				req.Header.Set(wire.HeaderToken, stage.Token)
				rec := httptest.NewRecorder()
				e.admin.ServeHTTP(rec, req)
				var ret wire.Return
				if err := ret.Decode(rec.Body.Bytes()); err != nil || !ret.OK() { // or it comes for ever
					t.Errorf("answered %s", rec.Body)
				}
				synctest.Wait()
				if c.refused {
					e.mustBe(id, xxljob.StateDispatched)
				} else {
					e.mustBe(id, xxljob.StateSucceeded)
				}
			})
		})
	}
}

// TestResultOfAnotherSchedulers: an executor that was attached to an earlier scheduler of
// this process may still have a result for it, under an id that this one has given too.
func TestResultOfAnotherSchedulers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &stage.UserExecutor{Of: "near", OnRun: func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
			go func() {
				results := []wire.CallbackRequest{
					{LogID: r.LogID, LogDateTim: r.LogDateTime - 1000, HandleCode: 500, HandleMsg: "of the other", Exact: true},
					{LogID: r.LogID, LogDateTim: r.LogDateTime, HandleCode: 200, HandleMsg: "its own", Exact: true},
				}
				for _, res := range results {
					if ret, err := admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{res}); err != nil || !ret.OK() {
						t.Errorf("%+v: %+v, %v", res, ret, err)
					}
					time.Sleep(time.Second)
				}
			}()
			return wire.Success(), nil
		}}
		e := newElsewhere(t, nil, xxljob.Config{}, nil)
		stage.Must(t, e.Attach(x))
		id := e.trigger(xxljob.Job{App: "near"})
		time.Sleep(3 * time.Second)
		if run := e.mustBe(id, xxljob.StateSucceeded); run.HandleMsg != "its own" {
			t.Errorf("recorded %q", run.HandleMsg)
		}
	})
}
