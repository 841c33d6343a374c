//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// What stands between nodes and executors in processes of their own. Nobody dies: no run may be
// lost, or run twice.

// openRemote makes a database whose nodes take a registration for gone after a few seconds.
func openRemote(ctx context.Context, a *arena) error {
	a.dead = 9 * time.Second
	return a.openPrimary(ctx)
}

// balance has a balancer before two executors, which register its address, as pods do that know
// of their service alone. Their runs outlast what a registration is good for.
func balance(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		return a.behind(ctx, "balancer", "balanced", 2, d, "shared-address", nil, pass,
			control.Job{Name: "balanced", Kind: control.Cron, Period: 20_000, Route: "ROUND", Param: "takes=16000"},
			control.Job{Name: "balanced, concurrent", Kind: control.Cron, Period: 10_000, Route: "ROUND", Block: audit.BlockConcurrent, Max: 4, Param: "takes=14000"},
			control.Job{Name: "balanced, short", Kind: control.Cron, Period: 2000, Route: "ROUND"})
	}
}

// statuses are what no executor answers.
func statuses() []int {
	return []int{http.StatusFound, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests}
}

// wall has a proxy before an executor that answers half of the triggers itself, with a status.
func wall(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		answer := func(executor http.Handler, w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/run") || rand.IntN(2) == 0 {
				executor.ServeHTTP(w, r)
				return
			}
			refuse(w)
		}
		return a.behind(ctx, "wall", "walled", 1, d, "", nil, answer,
			control.Job{Name: "walled", Kind: control.Cron, Period: 1000, Route: "FIRST", Param: control.Chain + " walled ff", Retries: 12, Pause: 200, Rerun: true},
			control.Job{Name: "walled round", Kind: control.Cron, Period: 2000, Route: "ROUND", Param: control.Chain + " round o", Retries: 12, Pause: 200, Rerun: true})
	}
}

// wallBack has a proxy between an executor and each node that answers half of the executor's calls itself,
// with a status: results and registrations come late, and none is lost or told twice.
func wallBack(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		admins, err := a.admins()
		if err != nil {
			return err
		}
		for i, admin := range admins {
			to, err := url.Parse(admin)
			if err != nil {
				return err
			}
			proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host }}
			at, err := a.serve(func(w http.ResponseWriter, r *http.Request) {
				if rand.IntN(2) == 0 {
					refuse(w)
				} else {
					proxy.ServeHTTP(w, r)
				}
			})
			if err != nil {
				return err
			}
			admins[i] = at + to.Path
		}
		return a.behind(ctx, "wall before the nodes", "walledback", 1, d, "", admins, pass,
			control.Job{Name: "walled back", Kind: control.Cron, Period: 1000, Route: "FIRST"},
			control.Job{Name: "walled back, failing", Kind: control.Cron, Period: 2000, Route: "ROUND", Param: control.Chain + " back ffo", Retries: 3, Pause: 200, Rerun: true})
	}
}

// wallBehind has a proxy before an executor that hands it all triggers, and answers half of them itself, with a
// status, in place of what the executor has said: such a run ends as refused, and has begun all the same.
func wallBehind(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		answer := func(executor http.Handler, w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/run") || rand.IntN(2) == 0 {
				executor.ServeHTTP(w, r)
				return
			}
			executor.ServeHTTP(httptest.NewRecorder(), r)
			refuse(w)
		}
		return a.behind(ctx, "wall behind an executor", "deceived", 1, d, "false-refusal", nil, answer,
			control.Job{Name: "deceived", Kind: control.Cron, Period: 1000, Route: "FIRST"},
			control.Job{Name: "deceived, concurrent", Kind: control.Cron, Period: 1000, Route: "ROUND", Block: audit.BlockConcurrent, Max: 4, Param: "takes=500"})
	}
}

// pass lets the executor answer.
func pass(executor http.Handler, w http.ResponseWriter, r *http.Request) { executor.ServeHTTP(w, r) }

// refuse answers with a status that no executor and no scheduler gives.
func refuse(w http.ResponseWriter) {
	all := statuses()
	http.Error(w, "not from here", all[rand.IntN(len(all))])
}

// serve has somebody answer calls until the arena is closed, and returns where.
func (a *arena) serve(answer http.HandlerFunc) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: answer}
	go func() { _ = server.Serve(ln) }()
	a.later = append(a.later, server.Close)
	return "http://" + ln.Addr().String(), nil
}

// behind has n executors of an app behind one address, where each call is answered by the
// given function, which may ask one of the executors. They call the admins given, or the nodes where none are.
func (a *arena) behind(ctx context.Context, name, app string, n int, d time.Duration, trouble string, admins []string, answer func(executor http.Handler, w http.ResponseWriter, r *http.Request), jobs ...control.Job) (err error) {
	if admins == nil {
		if admins, err = a.admins(); err != nil {
			return err
		}
	}
	targets := make([]*url.URL, n)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(targets[rand.IntN(n)]) }}
	at, err := a.serve(func(w http.ResponseWriter, r *http.Request) { answer(proxy, w, r) })
	if err != nil {
		return err
	}
	for i := range n {
		listen, err := freeAddress()
		if err != nil {
			return err
		}
		targets[i] = &url.URL{Scheme: "http", Host: listen}
		x := &member{name: fmt.Sprintf("%s-x%d", app, i+1), arena: a, args: []string{"-executor", app, "-listen", listen, "-address", at + "/", "-admins", strings.Join(admins, ","), "-dead", a.dead.String()}}
		a.mu.Lock()
		a.executors = append(a.executors, x)
		a.mu.Unlock()
		if err := x.start(); err != nil {
			return err
		}
	}
	_ = pause(ctx, 2*time.Second) // they register
	for _, j := range jobs {
		j.App, j.Remote = app, true
		if _, err := a.ensure(ctx, nil, j, false); err != nil {
			return err
		}
	}
	f := audit.Fault{Name: name, Effect: audit.Harmless, Begin: now(), Trouble: trouble, ToldWithin: 45_000}
	_ = pause(ctx, d)
	f.End = now()
	a.journal.fault(f)
	return ctx.Err()
}

// admins are where the nodes take the calls of executors.
func (a *arena) admins() (list []string, err error) {
	for _, m := range a.all() {
		address, err := os.ReadFile(filepath.Join(a.dir, control.AdminFile(m.name)))
		if err != nil {
			return nil, err
		}
		list = append(list, string(address))
	}
	return list, nil
}

// freeAddress is one of this machine's at which nobody listens.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}
