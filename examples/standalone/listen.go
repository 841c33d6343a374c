package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
)

// tokenVariable is the environment's -token: on a command line everybody on the host
// sees it.
const tokenVariable = "XXLJOB_TOKEN"

// tokens are the access tokens that the flags give: one for all executors, or two with a
// comma between them while one takes the other's place.
func (o options) tokens() map[string][]string {
	if o.token == "" {
		return nil
	}
	return map[string][]string{"": strings.Split(o.token, ",")}
}

// checkTokens says what is wrong with the tokens, and never one of them.
func (o options) checkTokens() error {
	switch {
	case o.token != "":
		if _, err := wire.NewKeyring(wire.Tokens{Shared: o.tokens()[""]}); err != nil {
			return fmt.Errorf("%s: %s", o.tokenFrom, strings.TrimPrefix(err.Error(), "xxljob: shared tokens: "))
		}
	case o.listen != "" && !o.unsafe:
		return fmt.Errorf("-listen %s: give the executors a token by -token or %s, or say -insecure", o.listen, tokenVariable)
	}
	return nil
}

// checkJobsAPI says what is wrong with the apps whose jobs are managed from elsewhere.
func (o options) checkJobsAPI() error {
	for i, app := range o.jobsAPI {
		switch {
		case o.listen == "":
			return errors.New("-jobs-api: nobody can call without -listen")
		case app == "" || len(app) > 64 || slices.Contains(o.jobsAPI[:i], app):
			return fmt.Errorf("-jobs-api: %q: want names of apps with commas between them, each once", app)
		case app == appName:
			return fmt.Errorf("-jobs-api: %s is this program's own app, for which the token of executors does not speak", app)
		}
	}
	return nil
}

// listener is where executors of other processes and other languages register; nil
// inside where there is none.
type listener struct{ net.Listener }

// bind takes the address of -listen. Nobody is answered there yet.
func (o options) bind(ctx context.Context) (listener, error) {
	if o.listen == "" {
		return listener{}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return listener{}, fmt.Errorf("-listen %s: %w", o.listen, err)
	}
	return listener{l}, nil
}

func (l listener) close() {
	if l.Listener != nil {
		_ = l.Close() // a second time mostly, which is no matter
	}
}

// serveExecutors answers executors until ctx ends.
func (l listener) serveExecutors(ctx context.Context, s xxljob.Scheduler, p *printer) error {
	if l.Listener == nil {
		return nil
	}
	handler, err := s.AdminHandler()
	if err != nil {
		return err
	}
	p.say("executors register at http://%s/xxl-job-admin", l.Addr())
	return l.serve(ctx, handler)
}

// serveConsole shows the console until ctx ends.
func (l listener) serveConsole(ctx context.Context, p *printer, pages http.Handler, page string) error {
	if l.Listener == nil {
		return nil
	}
	host := l.Addr().String()
	if at := l.Addr().(*net.TCPAddr); at.IP.IsLoopback() {
		host = fmt.Sprintf("localhost:%d", at.Port)
	}
	p.say("console: http://%s/console/%s", host, page)
	mux := http.NewServeMux()
	mux.Handle("/console/", pages)
	mux.Handle("/{$}", http.RedirectHandler("/console/", http.StatusSeeOther))
	return l.serve(ctx, mux)
}

// serve answers requests until ctx ends.
func (l listener) serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second, // executors' bodies have ten
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute, // Java executors keep theirs for 90 s
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// Results of handlers elsewhere are taken while those here are waited for.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
