package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/xxljob/xxljob/cmd/xxljob/internal/bench"
	"github.com/xxljob/xxljob/cmd/xxljob/internal/chart"
)

// benchVerb is the flags of the verb bench.
type benchVerb struct {
	Store       string        `enum:"memory,postgres" default:"memory" help:"Where the state is: ${enum}."`
	DSN         string        `name:"dsn" placeholder:"ADDRESS" help:"A Postgres database; a schema is made in it, and dropped at the end. Without it XXLJOB_TEST_DATABASE_URL, or else a server of its own, which has to be installed."`
	Connections int           `help:"Size of the pool of connections; 0: 8."`
	Executor    string        `enum:"inprocess,http" default:"inprocess" help:"Where handlers run: ${enum}. With http, in processes of their own on loopback."`
	Executors   int           `help:"How many of these processes; 0: 4."`
	Shape       string        `enum:"steady,herd,sparse,drain,overload" default:"steady" help:"The load: ${enum}."`
	Places      int           `help:"How many handlers run at once in a process; 0: 2000, the default of executors."`
	Jobs        int           `help:"How many jobs there are. 0: of a herd 10000, of sparse 1000000 that wait, of a drain 5000."`
	Rate        int           `help:"How many one-second jobs are due, spread over the second. 0: steady 5000, sparse 100."`
	Runs        int           `help:"How many runs wait at the start of a drain. 0: 200000, or 50000 where the drain finds the capacity for overload."`
	Capacity    float64       `help:"How many runs a second come through, of which overload offers 1.5 times as many. 0: a drain finds it."`
	Duration    time.Duration `help:"How long it is measured; 0: 30s."`
	Warmup      time.Duration `help:"How long the load lasts before; 0: 5s."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
	SVG         string        `name:"svg" placeholder:"DIR" help:"Draw the distribution of the lateness, and an overload over time, as SVG files in this directory."`
}

// Help is what the verb's help says below the flags' summary.
func (*benchVerb) Help() string {
	return `Lateness is from the instant of the schedule to the first line of the handler. The audit compares
all instants, from the first to the last, with what handlers were called for and what the store
has recorded. The exit code is 1 where it finds an instant that was lost, ran twice, or early.`
}

// Run measures and prints.
func (v *benchVerb) Run(ctx context.Context, p *program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r, err := bench.Run(ctx, bench.Config{
		Store: v.Store, DSN: v.DSN, Connections: v.Connections, Executor: v.Executor, Executors: v.Executors, Places: v.Places, Shape: v.Shape,
		Jobs: v.Jobs, Rate: v.Rate, Runs: v.Runs, Capacity: v.Capacity, Duration: v.Duration, Warmup: v.Warmup,
		Child: []string{self, "bench-executor"}, Log: p.err,
	}, commandLine(p.args))
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := v.print(r, p.out); err != nil {
		return err
	}
	if err := v.draw(r, p.err); err != nil {
		return err
	}
	if !r.Clean {
		fmt.Fprintln(p.err, "xxljob: the audit is not clean")
		return errFound
	}
	return nil
}

func (v *benchVerb) print(r *bench.Report, out io.Writer) error {
	if !v.JSON {
		return r.Print(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (v *benchVerb) draw(r *bench.Report, log io.Writer) error {
	if v.SVG == "" {
		return nil
	}
	files, err := chart.Draw(r, v.SVG)
	for _, f := range files {
		fmt.Fprintln(log, "drawn:", f)
	}
	return err
}

// commandLine is what was called, without passwords.
func commandLine(args []string) string {
	shown := []string{"xxljob"}
	for _, a := range args {
		shown = append(shown, withoutPassword(a))
	}
	return strings.Join(shown, " ")
}

// withoutPassword hides the password in an address, or in a list of settings such as
// password=... of libpq.
func withoutPassword(arg string) string {
	flag, value, found := strings.Cut(arg, "=")
	if !found || !strings.HasPrefix(flag, "--") {
		flag, value = "", arg
	} else {
		flag += "="
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		value = u.Redacted()
	}
	return flag + regexp.MustCompile(`(?i)(password\s*=\s*)('[^']*'|[^\s&']+)`).ReplaceAllString(value, "${1}xxxxx")
}

// executorVerb is an executor of bench.
type executorVerb struct{}

// Run serves until standard input ends.
func (*executorVerb) Run(ctx context.Context, p *program) error {
	// Ctrl-C reaches the whole group of processes: the parent says when to end.
	return bench.Child(context.WithoutCancel(ctx), p.in, p.out)
}
