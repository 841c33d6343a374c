//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
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
		return a.behind(ctx, "balancer", "balanced", 2, d, "shared-address", func(http.ResponseWriter, *http.Request) bool { return false },
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
		answer := func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/run") || rand.IntN(2) == 0 {
				return false
			}
			all := statuses()
			http.Error(w, "not from here", all[rand.IntN(len(all))])
			return true
		}
		return a.behind(ctx, "wall", "walled", 1, d, "", answer,
			control.Job{Name: "walled", Kind: control.Cron, Period: 1000, Route: "FIRST", Param: control.Chain + " walled ff", Retries: 12, Pause: 200, Rerun: true},
			control.Job{Name: "walled round", Kind: control.Cron, Period: 2000, Route: "ROUND", Param: control.Chain + " round o", Retries: 12, Pause: 200, Rerun: true})
	}
}

// behind has n executors of an app behind one address, where each call is answered by the
// given function, or by one of the executors.
func (a *arena) behind(ctx context.Context, name, app string, n int, d time.Duration, trouble string, answer func(http.ResponseWriter, *http.Request) bool, jobs ...control.Job) (err error) {
	admins, err := a.admins()
	if err != nil {
		return err
	}
	targets := make([]*url.URL, n)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(targets[rand.IntN(n)]) }}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})}
	go func() { _ = server.Serve(ln) }()
	a.later = append(a.later, server.Close)
	for i := range n {
		listen, err := freeAddress()
		if err != nil {
			return err
		}
		targets[i] = &url.URL{Scheme: "http", Host: listen}
		x := &member{name: fmt.Sprintf("%s-x%d", app, i+1), arena: a, args: []string{"-executor", app, "-listen", listen, "-address", "http://" + ln.Addr().String() + "/", "-admins", strings.Join(admins, ","), "-dead", a.dead.String()}}
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
