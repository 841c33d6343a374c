package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/xxljob/xxljob/executor"
)

// childOrder is what an executor is told, as one line of JSON.
type childOrder struct {
	Admin, Token, App string
	Places            int   // of the executor; 0 for the default
	Base              int64 // that of the calls
}

// Child is an executor in a process of its own: the other end of child. It reads its order from
// in, writes its address as a line to out, one byte when its first handler is called, and, when
// in ends, the number of its calls and the calls.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var order childOrder
	if err := json.Unmarshal(line, &order); err != nil {
		return err
	}
	x := &childWork{calls: &calls{base: order.Base}, out: out}
	e, address, stop, err := serveChild(ctx, order, x.handle)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := fmt.Fprintln(out, address); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r) // until the parent closes it, or has ended
	stopping, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if stopped := e.Stop(stopping); err == nil {
		err = stopped
	}
	x.tell()
	if err != nil {
		return err
	}
	return x.report()
}

// serveChild starts the executor on a port of its own. The caller calls stop once the executor
// has ended.
func serveChild(ctx context.Context, order childOrder, h executor.Handler) (e *executor.Executor, address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	address = "http://" + l.Addr().String() + "/"
	e, err = executor.New(executor.Config{
		App: order.App, Address: address, Places: order.Places, Logger: warnings(os.Stderr),
		Admins: []executor.AdminCluster{{Addresses: []string{order.Admin}, Token: order.Token}},
	})
	var served http.Handler
	if err == nil {
		err = e.Handle(handler, h)
	}
	if err == nil {
		served, err = e.HTTPHandler()
	}
	if err == nil {
		err = e.Start(ctx)
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: served, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // until stop
	return e, address, func() { _ = server.Close() }, nil
}

// childWork is the handler of a child and who it tells.
type childWork struct {
	calls *calls
	once  sync.Once
	out   io.Writer
}

func (x *childWork) handle(_ context.Context, t *executor.Task) error {
	x.calls.note(t)
	x.tell()
	return nil
}

// tell writes the byte that says that there was a call, or that none will come.
func (x *childWork) tell() {
	x.once.Do(func() {
		_, _ = x.out.Write([]byte{'!'}) // a parent that is gone reads no report either
	})
}

func (x *childWork) report() error {
	all := x.calls.log.All()
	w := bufio.NewWriterSize(x.out, 1<<20)
	if err := binary.Write(w, binary.LittleEndian, int64(len(all))); err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, all); err != nil {
		return err
	}
	return w.Flush()
}
