package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// childArg is the argument that makes this program a contestant's process.
const childArg = "child"

// task is what a contestant's process is told first.
type task struct {
	Who   string `json:"who"`             // ours, river, gocron, robfig or quartz
	DSN   string `json:"dsn,omitempty"`   // of the database; empty for one in memory
	Conns int    `json:"conns,omitempty"` // of the pool
	// For one in memory: how many jobs it has, of one second each; Units are runs of them that
	// wait, instead of a schedule; Spread is whether the jobs are spread over the second.
	Jobs   int  `json:"jobs,omitempty"`
	Units  int  `json:"units,omitempty"`
	Spread bool `json:"spread,omitempty"`
}

// order is what it is told then. Each is answered.
type order struct {
	Do     string `json:"do"` // start, count, stop, or see
	Window window `json:"window"`
}

// answer is what it says.
type answer struct {
	Err   string         `json:"err,omitempty"`
	Calls int            `json:"calls"`          // of handlers, so far
	Done  int64          `json:"done,omitempty"` // what a store in memory has as succeeded
	Alloc measure.Figure `json:"alloc"`          // bytes that this process has allocated
	Seen  *seen          `json:"seen,omitempty"`
}

// contestant is a scheduler or a queue with its work, which has not begun. Its handlers note
// their calls.
type contestant interface {
	start(ctx context.Context) error
	// stop returns when no handler is running any more.
	stop(ctx context.Context) error
}

// recorder is a contestant that keeps in memory what it has done.
type recorder interface {
	// done is how many units are recorded as succeeded.
	done(ctx context.Context) (int64, error)
}

// enter makes the contestant of a task.
func enter(ctx context.Context, t task, c *calls) (contestant, error) {
	switch {
	case t.Who == ours && t.DSN != "":
		return enterOurs(ctx, t, c)
	case t.Who == ours:
		return enterOursInMemory(ctx, t, c)
	case t.Who == riverName:
		return enterRiver(ctx, t, c)
	case t.Who == gocronName:
		return enterGocron(t, c)
	case t.Who == robfigName:
		return enterRobfig(t, c)
	case t.Who == quartzName:
		return enterQuartz(t, c)
	}
	return nil, fmt.Errorf("there is no contestant %q", t.Who)
}

// childMain reads a task and orders from in, and writes answers to out, a line of JSON each,
// until there are no more orders.
func childMain(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var t task
	if err := orders.Decode(&t); err != nil {
		return err
	}
	var c calls
	who, err := enter(ctx, t, &c)
	for o := (order{Do: "enter"}); ; {
		a := answer{}
		if err == nil {
			a, err = obey(ctx, who, &c, o)
		}
		if err != nil {
			a.Err = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
		o = order{}
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// obey carries out one order.
func obey(ctx context.Context, who contestant, c *calls, o order) (a answer, err error) {
	switch o.Do {
	case "start":
		err = who.start(ctx)
	case "stop":
		stopping, cancel := context.WithTimeout(ctx, time.Minute)
		err = who.stop(stopping)
		cancel()
	case "see":
		s := c.see(o.Window)
		a.Seen = &s
	}
	if r, ok := who.(recorder); ok && err == nil {
		a.Done, err = r.done(ctx)
	}
	a.Calls, a.Alloc = c.all.Len(), measure.Meter{}.Now(ctx).AllocBytes
	return a, err
}

// errorsOnly is where contestants log: what they warn of under load is not what is measured.
func errorsOnly() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
