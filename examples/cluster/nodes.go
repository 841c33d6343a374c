package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/store/postgres"
)

// runNodes starts nodes as processes of their own, kills one now and then, and
// starts it again.
func runNodes(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	if err := migrate(ctx, o); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, o.store)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(ctx, pool, postgres.Config{Schema: o.schema})
	if err != nil {
		return err
	}
	defer store.Close()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	out = &shared{out: out}
	reports := &reporter{store: store, window: o.window, out: out}
	nodes := map[string]*child{}
	var names []string
	var running sync.WaitGroup
	for i := range o.nodes {
		c := &child{o: o, program: program, out: out}
		c.o.node = string(rune('a' + i))
		nodes[c.o.node], names = c, append(names, c.o.node)
		running.Go(func() { c.keep(ctx) })
	}
	defer running.Wait()
	fmt.Fprintf(out, "# %s: enter a name to kill that node, an empty line for any; Ctrl-C ends all\n", strings.Join(names, " "))

	lines := readLines(in)
	var tick <-chan time.Time
	if o.every > 0 {
		t := time.NewTicker(o.every)
		defer t.Stop()
		tick = t.C
	}
	for {
		name := ""
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		case line, ok := <-lines:
			if !ok {
				lines = nil // go on by the clock
				continue
			}
			name = strings.TrimSpace(line)
		}
		if name == "" {
			name = names[rand.IntN(len(names))]
		}
		if c := nodes[name]; c == nil {
			fmt.Fprintf(out, "# there is no node %q\n", name)
		} else {
			running.Go(func() {
				k, killed := c.kill()
				if !killed {
					return
				}
				if err := reports.report(ctx, k); err != nil {
					fmt.Fprintf(out, "# no report of node %s: %v\n", k.node, err)
				}
			})
		}
	}
}

// migrate makes the tables, and finds out before there are any nodes whether the
// database can be used.
func migrate(ctx context.Context, o options) error {
	pool, err := pgxpool.New(ctx, o.store)
	if err != nil {
		return err
	}
	defer pool.Close()
	return postgres.Migrate(ctx, pool, postgres.Config{Schema: o.schema})
}

// readLines returns the lines of a reader. Its goroutine ends with the input, or
// with the process.
func readLines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// child is a node in a process of its own.
type child struct {
	o       options
	program string
	out     io.Writer

	mu   sync.Mutex
	proc *os.Process // guarded by mu; nil while the node is away
}

// keep runs the node, and starts it again some time after it was killed, until
// ctx ends. Then it stops it in good order.
func (c *child) keep(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.once(ctx)
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(c.out, "# node %s is gone (%v); back in %v\n", c.o.node, err, c.o.away)
		select {
		case <-ctx.Done():
		case <-time.After(c.o.away):
		}
	}
}

// once runs the node's process until it ends. The process stops when its input
// does, and so outlives neither ctx nor this program, however that ends.
func (c *child) once(ctx context.Context) error {
	cmd := exec.Command(c.program, "-piped", "-schema", c.o.schema, "-node", c.o.node)
	cmd.Env = append(os.Environ(), storeVariable+"="+c.o.store)
	cmd.Stdout = &lineWriter{out: c.out}
	cmd.Stderr = &lineWriter{out: c.out, prefix: c.o.node + " ! "}
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { input.Close() })()
	c.set(cmd.Process)
	defer c.set(nil)
	return cmd.Wait()
}

func (c *child) set(p *os.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proc = p
}

// kill is SIGKILL: the process has no say in it. It reports whether there was one.
func (c *child) kill() (k kill, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil {
		fmt.Fprintf(c.out, "# node %s is not there\n", c.o.node)
		return kill{}, false
	}
	fmt.Fprintf(c.out, "# killing node %s, process %d\n", c.o.node, c.proc.Pid)
	k = kill{node: c.o.node, at: time.Now()}
	if err := c.proc.Kill(); err != nil {
		fmt.Fprintf(c.out, "# node %s: %v\n", c.o.node, err)
		return kill{}, false
	}
	return k, true
}

// shared is a writer for several goroutines.
type shared struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// lineWriter passes whole lines on, so that those of several processes are not
// mixed up.
type lineWriter struct {
	out    io.Writer
	prefix string
	rest   []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		if _, err := fmt.Fprintf(w.out, "%s%s\n", w.prefix, line); err != nil {
			return 0, err
		}
		w.rest = append([]byte(nil), rest...)
	}
}
