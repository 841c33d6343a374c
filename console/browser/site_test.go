package browser

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// mount is where the console is in the host, password that of all users.
const (
	mount    = "/console/"
	password = "correct horse"
)

// site is a console with a started scheduler, served on a loopback address.
type site struct {
	*testing.T
	store   *memory.Store
	faults  *storetest.WholeFaults // the store as the console has it
	s       xxljob.Scheduler
	origin  string
	handler http.Handler
	jobs    map[string]int64 // by name
	runs    map[string]int64 // by what they are shown for
	token   int64            // of root
	app     string           // one of several
	slow    atomic.Int64     // nanoseconds that each answer waits
}

// newSite starts a scheduler and serves its console.
func newSite(t *testing.T) *site {
	return newSiteOf(t, func(s xxljob.Scheduler) xxljob.Scheduler { return s })
}

// newSiteOf is newSite with a scheduler as the console is to see it.
func newSiteOf(t *testing.T, seen func(xxljob.Scheduler) xxljob.Scheduler) *site {
	t.Helper()
	x := &site{T: t, store: memory.New(), jobs: map[string]int64{}, runs: map[string]int64{}}
	quiet := slog.New(slog.DiscardHandler)
	s, err := xxljob.New(x.store, xxljob.Config{App: "orders", Logger: quiet, Executor: executor.Config{Log: executor.LogConfig{MaxBytes: 64 << 20}}})
	must(t, err)
	x.s, x.faults = s, storetest.WrapWhole(x.store)
	must(t, s.Handle("export", export))
	must(t, s.Handle("fail", fail))
	must(t, s.Handle("talk", talk))
	must(t, s.Handle("flood", flood))
	must(t, s.Start(context.Background()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	x.serve(seen(s), console.Accounts())
	return x
}

// serve serves the console of the site.
func (x *site) serve(s xxljob.Scheduler, auth console.Auth) {
	x.Helper()
	h, err := console.New(console.Config{Store: x.faults, Scheduler: s, Auth: auth, Logger: slog.New(slog.DiscardHandler),
		Title: "Orders", Label: console.Label{Text: "STAGING", Color: "amber"}})
	must(x.T, err)
	mux := http.NewServeMux()
	mux.Handle(mount, http.StripPrefix("/console", h))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(x.slow.Load()))
		mux.ServeHTTP(w, r)
	}))
	x.Cleanup(server.Close)
	x.origin, x.handler = server.URL, mux
}

// export is a handler whose lines have what lines may have: colors, other scripts, no end.
func export(_ context.Context, t *xxljob.Task) error {
	log := t.Log()
	log.Info("exporting", "param", t.Param)
	log.Warn("\x1b[33mthe ledger of last week is open\x1b[0m, \x1b[1;31mretrying\x1b[0m")
	log.Info("导出完成：已写入 1,204 行；匯出完成。")
	log.Info("one long line: " + strings.Repeat("0123456789abcdef", 40))
	log.Info("done")
	t.SetResult(`{"rows":1204,"file":"s3://ledgers/2027/03/01/export.csv.gz"}`)
	return nil
}

func fail(_ context.Context, t *xxljob.Task) error {
	t.Log().Error("the rates of ECB do not answer: connection refused")
	return xxljob.Permanent(context.DeadlineExceeded)
}

// talk is a handler that writes until it is told to stop.
func talk(ctx context.Context, t *xxljob.Task) error {
	for n := 1; ; n++ {
		t.Log().Info("still at it", "n", n, "param", t.Param)
		t.Progress(min(n, 99), "step "+strconv.Itoa(n))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// job adds a job.
func (x *site) job(j xxljob.Job) xxljob.Job {
	x.Helper()
	if j.App == "" {
		j.App = "orders"
	}
	added, err := x.s.AddJob(xxljob.WithActor(context.Background(), "wang"), j)
	must(x.T, err)
	x.jobs[j.Name] = added.ID
	return added
}

// trigger runs a job once.
func (x *site) trigger(j xxljob.Job) int64 {
	x.Helper()
	ids, err := x.s.Trigger(xxljob.WithActor(context.Background(), "wang"), j.ID, xxljob.Trigger{})
	must(x.T, err)
	return ids[0]
}

// wait waits until a run is in a state.
func (x *site) wait(id int64, what string, is func(xxljob.Run) bool) {
	x.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r, err := x.store.Run(context.Background(), id)
		must(x.T, err)
		if is(r) {
			return
		}
		if time.Now().After(end) {
			x.Fatalf("run %d is %s, want %s", id, r.State, what)
		}
	}
}

func ended(r xxljob.Run) bool { return r.State.Ended() }

// user adds a user.
func (x *site) user(name string) {
	x.Helper()
	must(x.T, console.CreateUser(context.Background(), x.store, console.User{Name: name, Title: "王小明", Admin: true}, password))
}

// others adds users with some rights, and tokens.
func (x *site) others() {
	x.Helper()
	ctx := xxljob.WithActor(context.Background(), "root")
	must(x.T, console.CreateUser(ctx, x.store, console.User{Name: "zhao.min", Title: "赵敏", Apps: map[string]console.Role{"orders": console.Editor, "billing-and-invoicing": console.Operator, "*": console.Viewer}}, password))
	must(x.T, console.CreateUser(ctx, x.store, console.User{Name: "new.colleague", Title: "李四"}, password))
	u := must1(x.store.AddUser(ctx, store.User{Name: "former.colleague@example.com", Title: "A former colleague of the ledger team"}))
	u.Disabled = true
	must1(x.store.UpdateUser(ctx, u))
	x.session("zhao.min")
	mine := must1(x.store.AddToken(ctx, store.Token{User: "root", Name: "deploys of the ledger team", Hash: strings.Repeat("r", store.HashBytes), Expires: time.Now().Add(30 * 24 * time.Hour)}))
	x.token = mine.ID
	for name, lasts := range map[string]time.Duration{"ci of the orders team": 90 * 24 * time.Hour, "发票服务": time.Hour, "expired": time.Millisecond} {
		must1(x.store.AddAppToken(ctx, store.AppToken{Name: name, Apps: []string{"orders", "billing-and-invoicing"}, Hash: strings.Repeat("h", store.HashBytes), Expires: time.Now().Add(lasts)}))
	}
}

// session logs a user in and returns the cookie's value.
func (x *site) session(name string) string {
	x.Helper()
	r := httptest.NewRequest(http.MethodPost, mount+"login", strings.NewReader(url.Values{"name": {name}, "password": {password}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	x.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Name == "xxljob_session" {
			return c.Value
		}
	}
	x.Fatal("no session: ", w.Code, w.Body)
	return ""
}

// endSessions ends all sessions of a user, as time does.
func (x *site) endSessions(name string) {
	x.Helper()
	ctx := context.Background()
	list, err := x.store.Sessions(ctx, name, store.SessionLimits{Idle: time.Hour, Most: time.Hour})
	must(x.T, err)
	for _, s := range list {
		must(x.T, x.store.EndSession(ctx, name, s.ID))
	}
	if len(list) == 0 {
		x.Fatal("there is no session to end")
	}
}

// filled is a site with something on each of its pages.
func filled(t *testing.T) *site {
	x := newSite(t)
	x.user("root")
	x.others()
	ctx := xxljob.WithActor(context.Background(), "wang")
	nightly := x.job(xxljob.Job{Name: "Nightly export", Handler: "export", Schedule: xxljob.Cron("0 0 3 * * ?").In("Europe/Berlin"),
		Param: `{"table":"ledger","since":"yesterday","columns":["id","amount","currency"]}`, Author: "wang", AlarmEmail: "oncall@example.com", Tags: []string{"ledger", "nightly"}, Timeout: 20 * time.Minute, Retries: 2})
	j, err := x.store.Job(ctx, nightly.ID)
	must(t, err)
	j.Timeout, j.Param = 30*time.Minute, `{"table":"ledger","since":"yesterday"}`
	_, err = x.s.UpdateJob(ctx, j)
	must(t, err)
	rates := x.job(xxljob.Job{Name: "汇率同步 / 匯率同步", Handler: "fail", Schedule: xxljob.Crontab("15 4 * * 1-5").In("Asia/Shanghai"), Author: "李雷", Tags: []string{"外部"}})
	long := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual(), Param: "all"})
	name := "quarterly-reconciliation-of-all-ledgers-and-sub-ledgers-of-each-country-and-currency"
	another := must1(xxljob.New(x.store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)})) // the site's own would say that it has no such handler
	stopped := must1(another.AddJob(xxljob.WithActor(ctx, "wang"), xxljob.Job{App: "orders", Name: name, Handler: "com.example.ledger.QuarterlyReconciliationOfAllLedgersJobHandler", Schedule: xxljob.Cron("0 30 18 L 3,6,9,12 ?"), Stopped: true}))
	x.jobs[name] = stopped.ID
	_, err = x.s.EnsureJob(ctx, xxljob.Job{App: "orders", Key: "prune", Name: "Prune carts", Handler: "export", Schedule: xxljob.FixedDelay(12 * time.Hour), Author: "checkout"})
	must(t, err)
	x.jobs["stopped"] = stopped.ID
	x.jobs["rates"] = rates.ID

	for range 3 {
		x.runs["good"] = x.trigger(nightly)
		x.wait(x.runs["good"], "ended", ended)
	}
	x.runs["bad"] = x.trigger(rates)
	x.wait(x.runs["bad"], "ended", ended)
	x.runs["live"] = x.trigger(long)
	x.wait(x.runs["live"], "running", func(r xxljob.Run) bool { return !r.Started.IsZero() })
	return x
}
