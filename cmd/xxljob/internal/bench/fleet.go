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
	"os/exec"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// fleet is executors in processes of their own, and the server that they call.
type fleet struct {
	calls    *calls
	server   *http.Server
	children []*child
}

// child is one executor.
type child struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	out     *bufio.Reader
	address string        // under which it is called
	first   chan struct{} // closed when its first handler is called, or it has ended
}

// startFleet serves the scheduler on loopback and starts the executors.
func startFleet(ctx context.Context, n *node, token string) (*fleet, error) {
	admin, err := n.sched.AdminHandler()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &fleet{calls: n.calls, server: &http.Server{Handler: admin, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}}
	go func() { _ = f.server.Serve(l) }() // until stop closes it
	order := childOrder{Admin: "http://" + l.Addr().String(), Token: token, App: appDue, Places: n.cfg.Places, Base: n.calls.base}
	for range n.cfg.Executors {
		c, err := startChild(n.cfg, order)
		if err != nil {
			_, ended := f.stop()
			return nil, errors.Join(fmt.Errorf("start an executor: %w", err), ended)
		}
		f.children = append(f.children, c)
	}
	return f, nil
}

// startChild starts one and waits until it serves.
func startChild(cfg Config, order childOrder) (*child, error) {
	cmd := exec.Command(cfg.Child[0], cfg.Child[1:]...)
	cmd.Stderr = cfg.Log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, out: bufio.NewReaderSize(stdout, 1<<20), first: make(chan struct{})}
	err = json.NewEncoder(stdin).Encode(order)
	if err == nil {
		_, err = fmt.Fscanln(c.out, &c.address)
	}
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), cmd.Wait())
	}
	go c.awaitFirst() // until the child says so, or ends
	return c, nil
}

// awaitFirst reads the one byte that a child writes at its first call, or when it is to end.
func (c *child) awaitFirst() {
	_, _ = c.out.ReadByte() // what is wrong is seen when the calls are read
	close(c.first)
}

// addresses are those of all executors.
func (f *fleet) addresses() []string {
	var all []string
	for _, c := range f.children {
		all = append(all, c.address)
	}
	return all
}

// pids are the processes of the executors.
func (f *fleet) pids() []int {
	var all []int
	for _, c := range f.children {
		all = append(all, c.cmd.Process.Pid)
	}
	return all
}

// peak is the sum of the most memory that each of them has had resident.
func (f *fleet) peak() measure.Figure {
	sum := measure.Known(0)
	for _, pid := range f.pids() {
		sum = sum.Plus(measure.Proc{}.PeakRSSOf(pid))
	}
	return sum
}

// stop ends the executors and returns the calls of all.
func (f *fleet) stop() ([]call, error) {
	var all []call
	var errs []error
	for _, c := range f.children {
		calls, err := c.stop()
		all = append(all, calls...)
		errs = append(errs, err)
	}
	return all, errors.Join(append(errs, f.server.Close())...)
}

// stop has a child end, which it does when its standard input does, and reads its calls.
func (c *child) stop() ([]call, error) {
	defer time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() }).Stop()
	err := c.stdin.Close()
	<-c.first
	var n int64
	if err == nil {
		err = binary.Read(c.out, binary.LittleEndian, &n)
	}
	var calls []call
	if err == nil {
		calls = make([]call, n)
		err = binary.Read(c.out, binary.LittleEndian, calls)
	}
	if err = errors.Join(err, c.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("executor %s: %w", c.address, err)
	}
	return calls, nil
}
