package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// tokenVariable is the environment's -token: on a command line everybody on the host
// sees it.
const tokenVariable = "XXLJOB_TOKEN"

// tokens are the access tokens that the flags, or else the environment, give: one for
// all executors, or two with a comma between them while one takes the other's place.
func (o options) tokens() map[string][]string {
	list := o.token
	if list == "" {
		list = os.Getenv(tokenVariable)
	}
	if list == "" {
		return nil
	}
	return map[string][]string{"": strings.Split(list, ",")}
}

// listen serves executors of other processes and other languages until ctx ends.
func listen(ctx context.Context, o options, s xxljob.Scheduler, p *printer) error {
	if o.listen == "" {
		return nil
	}
	handler, err := s.Handler()
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute, // Java executors keep theirs for 90 s
		MaxHeaderBytes:    16 << 10,
	}
	p.say("executors register at http://%s/xxl-job-admin", l.Addr())
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
	err = server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
