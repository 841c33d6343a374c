// Command console is a service with pages and a login of its own, which shows the console of its
// scheduler to whoever is logged in there:
//
//	go run ./examples/console            # two users of its own: ann, who may all, and bob, who may see
//	go run ./examples/console -issuer https://id.example -client xxljob
//
// With -issuer people log in at an OpenID provider, and their groups say what they may; the secret
// of the client is that of XXLJOB_OIDC_SECRET.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/memory"
)

func main() {
	listen := flag.String("listen", "localhost:8090", "`address` of the service")
	issuer := flag.String("issuer", "", "`URL` of an OpenID provider; without one the service has two users of its own")
	client := flag.String("client", "xxljob", "with -issuer: `id` of this service there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Printf("http://%s/\n", l.Addr())
		err = run(ctx, l, provider{Issuer: *issuer, Client: *client, Secret: os.Getenv("XXLJOB_OIDC_SECRET")})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, l net.Listener, p provider) error {
	st := memory.New()
	s, err := xxljob.New(st, xxljob.Config{App: "shop"})
	if err != nil {
		return err
	}
	if err := s.Handle("remind", remind); err != nil {
		return err
	}
	if _, err := s.EnsureJob(ctx, xxljob.Job{Name: "Remind of open carts", Handler: "remind", Schedule: xxljob.Cron("0/10 * * * * ?")}); err != nil {
		return err
	}
	mux := http.NewServeMux()
	site, err := newSite(ctx, mux, p, "http://"+l.Addr().String())
	if err != nil {
		return err
	}

	// These three lines are all that a host needs.
	h, err := console.New(console.Config{Store: st, Scheduler: s, Auth: console.Func(site.user, "/login")})
	if err != nil {
		return err
	}
	mux.Handle("/jobs/", http.StripPrefix("/jobs", h))

	// The login and the logout of the service are not for other sites to send; the console looks itself.
	server := &http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(mux),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = s.Run(ctx)
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// remind is the service's work.
func remind(ctx context.Context, t *xxljob.Task) error {
	t.Log().Info("looking for open carts", slog.Time("due", t.ScheduledAt))
	t.SetResult("3 reminders")
	return ctx.Err()
}
