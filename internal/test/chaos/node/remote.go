//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Executors in processes of their own, over HTTP.

// token is what nodes and executors show each other.
const token = "chaos-chaos-chaos"

// serve is an executor until it is asked to stop.
func serve(ctx context.Context, o options, events *events) error {
	x, err := executor.New(executor.Config{
		App: o.executor, Addr: o.listen, Address: o.address, Beat: o.dead / 3,
		Admins: []executor.AdminCluster{{Addresses: strings.Split(o.admins, ","), Token: token}},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(x.Handle("work", events.work), x.Start(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return x.Stop(context.Background())
}

// serveAdmin takes the calls of executors, and writes down where.
func serveAdmin(o options, s xxljob.Scheduler) error {
	h, err := s.AdminHandler()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(ln, h) }() // until the process ends
	return os.WriteFile(filepath.Join(o.dir, control.AdminFile(o.name)), []byte("http://"+ln.Addr().String()+"/xxl-job-admin"), 0o600)
}
