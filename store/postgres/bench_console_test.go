package postgres

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// Processes beside BenchmarkConsole, so that what a console costs, and what those cost who look at
// it, is not mixed up with the scheduler. Each is this program again; it reads orders, a line of
// JSON each, and answers each with one.

// childVariable names in the environment what a child is for.
const childVariable = "XXLJOB_BENCH_CHILD"

// consoleName is how the sessions of a console's own process are called.
const consoleName = "bench console"

// child is such a process, as its parent sees it.
type child struct {
	in  *json.Encoder
	out *json.Decoder
}

// startChild starts one, which ends with the benchmark.
func startChild(b *testing.B, what string) *child {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // it ends with its input
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &child{json.NewEncoder(in), json.NewDecoder(out)}
}

// ask gives an order, and reads the answer.
func ask[Order, Answer any](b *testing.B, c *child, order Order) (a Answer) {
	b.Helper()
	if err := c.in.Encode(order); err != nil {
		b.Fatal(err)
	}
	if err := c.out.Decode(&a); err != nil {
		b.Fatal(err)
	}
	return a
}

// ChildOfBench does what a process of BenchmarkConsole is there for, and reports whether this is
// one.
func ChildOfBench() bool {
	what := os.Getenv(childVariable)
	var err error
	switch what {
	case "":
		return false
	case "console":
		err = serveConsole()
	case "viewers":
		err = view()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, what, err)
		os.Exit(1)
	}
	return true
}

// obey carries out orders until there are no more.
func obey[Order, Answer any](do func(Order) (Answer, error)) error {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var order Order
		if err := in.Decode(&order); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a, err := do(order)
		if err == nil {
			err = out.Encode(a)
		}
		if err != nil {
			return err
		}
	}
}

// usage is what a process with nothing but a console has used. Heaps are in bytes.
type usage struct {
	URL               string
	CPU               time.Duration
	Before, Now, Most uint64 // of the heap: before the console was made, now, and at most
}

// place is where a store is.
type place struct{ DSN, Schema string }

// serveConsole has a console of its own for a store that others work with.
func serveConsole() error {
	var c consoleProcess
	return obey(c.do)
}

type consoleProcess struct {
	url    string
	before uint64
	mu     sync.Mutex
	most   uint64 // guarded by mu
}

// do makes the console of the place that the first order names, and tells what was used.
func (c *consoleProcess) do(at place) (usage, error) {
	if c.url == "" {
		if err := c.serve(at); err != nil {
			return usage{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return usage{c.url, cpuUsed(), c.before, heapInUse(), c.most}, nil
}

func (c *consoleProcess) serve(at place) error {
	cfg, err := pgxpool.ParseConfig(at.DSN)
	if err != nil {
		return err
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = consoleName
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	st, err := New(context.Background(), pool, Config{Schema: at.Schema})
	if err != nil {
		return err
	}
	s, err := xxljob.New(st, xxljob.Config{App: "console", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {benchToken}}}})
	if err != nil {
		return err
	}
	runtime.GC()
	c.before = heapInUse()
	c.url, err = serveOn(st, s)
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			c.mu.Lock()
			c.most = max(c.most, heapInUse())
			c.mu.Unlock()
		}
	}()
	return err
}

// serveOn serves a console for whoever is on this machine, and returns where.
func serveOn(st *Store, s xxljob.Scheduler) (url string, err error) {
	h, err := console.New(console.Config{Store: st, Scheduler: s, Auth: console.Loopback(console.Editor), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(l, h) }() // until the process ends
	return "http://" + l.Addr().String() + "/", nil
}

// heapInUse is how many bytes of memory the heap has, of which objects are made.
func heapInUse() uint64 {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(all)
	return all[0].Value.Uint64() + all[1].Value.Uint64()
}
