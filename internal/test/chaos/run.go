//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// ErrViolated is returned by Run when the auditor found that a promise was broken.
var ErrViolated = errors.New("chaos: promises were broken")

// rest is how long a cluster is left alone behind each fault that does not do so
// itself.
const rest = 6 * time.Second

// briefRest is that of the brief form, in which nothing is held against the clock, and of a single
// node.
const briefRest = 3 * time.Second

// Run injects the faults and prints the report. It returns ErrViolated when a
// promise was broken, and another error when the test itself failed.
func Run(ctx context.Context, c Config) error {
	c = c.withDefaults()
	faults, err := c.choose()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return err
	}
	r := &runner{Config: c, dir: dir}
	fmt.Fprintf(c.Out, "seed %d; %d nodes a cluster; evidence in %s\n", c.Seed, c.Nodes, dir)
	err = r.run(ctx, faults)
	if err == nil && !c.Keep {
		return os.RemoveAll(dir)
	}
	fmt.Fprintf(c.Out, "evidence is kept in %s; again with -seed %d\n", dir, c.Seed)
	return err
}

// runner is one run of the program.
type runner struct {
	Config
	dir     string
	program string

	mu      sync.Mutex // guards Out and results
	results []result
}

// result is one row of the report.
type result struct {
	name   string
	took   time.Duration
	report *audit.Report
	notes  []string
	slow   string // see fault
}

func (r *runner) run(ctx context.Context, faults []fault) (err error) {
	clock := false
	for _, f := range faults {
		clock = clock || f.name == "clock-steps"
	}
	if r.program = r.Config.program; r.program == "" {
		if r.program, err = buildNode(r.dir, clock); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, units := range stages(group(faults)) {
		r.lanes(ctx, cancel, units)
	}
	r.print()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.verdict()
}

// The units that have the machine to themselves, as what they measure is held
// against a bound: what the others measure is that of a machine that is busy with
// several clusters. Two share it at a time: each leaves most of it idle.
const (
	unitProcesses = "processes"
	unitLock      = "routes-lock"
	unitRow       = "routes-row"
	unitPool      = "pool"
	unitPoolBare  = "pool without reserve"
	// unitFailpoints kills nodes as soon as they are back, so that beside other clusters backlogs
	// grow faster than what is left of the machine works them off.
	unitFailpoints = "failpoints"
)

// stages are the units that run at the same time, one stage after the other.
func stages(units [][]fault) [][][]fault {
	all := make([][][]fault, 5)
	for _, u := range units {
		switch u[0].unit {
		case unitProcesses:
			all[0] = append(all[0], u)
		case unitLock, unitRow:
			all[1] = append(all[1], u)
		case unitPool, unitPoolBare:
			all[2] = append(all[2], u)
		case unitFailpoints:
			all[3] = append(all[3], u)
		default:
			all[4] = append(all[4], u)
		}
	}
	all[4] = spread(all[4])
	return slices.DeleteFunc(all, func(s [][]fault) bool { return len(s) == 0 })
}

// spread puts the units that lock tables between the others: they take the longest, and
// the machine the least.
func spread(units [][]fault) (order [][]fault) {
	var locks, others [][]fault
	for _, u := range units {
		if strings.HasPrefix(u[0].unit, "lock-") {
			locks = append(locks, u)
		} else {
			others = append(others, u)
		}
	}
	for len(locks) > 0 {
		n := min(2, len(others))
		order, locks = append(order, locks[0]), locks[1:]
		order, others = append(order, others[:n]...), others[n:]
	}
	return append(order, others...)
}

// lanes works through units, some at the same time.
func (r *runner) lanes(ctx context.Context, cancel context.CancelCauseFunc, units [][]fault) {
	work := make(chan []fault, len(units))
	for _, u := range units {
		work <- u
	}
	close(work)
	var lanes sync.WaitGroup
	for range min(r.Lanes, len(units)) {
		lanes.Go(func() {
			for u := range work {
				if ctx.Err() != nil {
					return
				}
				if err := r.unit(ctx, u); err != nil {
					cancel(fmt.Errorf("%s: %w", u[0].unit, err))
					return
				}
			}
		})
	}
	lanes.Wait()
}

// group sorts faults into the units that share a cluster, in their order.
func group(faults []fault) [][]fault {
	var units [][]fault
	at := map[string]int{}
	for _, f := range faults {
		i, had := at[f.unit]
		if !had {
			i = len(units)
			at[f.unit] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], f)
	}
	return units
}

// unit injects faults into one cluster, one after the other, and judges it.
func (r *runner) unit(ctx context.Context, faults []fault) error {
	name := faults[0].unit
	h := fnv.New64a()
	h.Write([]byte(name))
	a, err := newArena(filepath.Join(r.dir, name), r.program, r.Seed^h.Sum64(), func(format string, args ...any) {
		r.say(name+": "+format, args...)
	})
	if err != nil {
		return err
	}
	a.alone = name == unitProcesses || name == unitLock || name == unitRow || name == unitPool || name == unitPoolBare
	a.slowly = r.Brief || r.Memory // as nothing is held against the clock there
	a.lease, a.pool, a.bare = faults[0].lease, faults[0].pool, faults[0].bare
	a.failing, a.owing = faults[0].failing, faults[0].owing
	err = r.inject(ctx, a, faults)
	return errors.Join(err, a.close())
}

func (r *runner) inject(ctx context.Context, a *arena, faults []fault) error {
	open, nodes := faults[0].open, r.Nodes
	switch {
	case r.Memory:
		open, nodes = func(context.Context, *arena) error { return nil }, 1
	case open == nil:
		open = openDatabase
	}
	if err := open(ctx, a); errors.Is(err, errNoCompiler) {
		a.say("left out: %v", err)
		return nil
	} else if err != nil {
		return err
	}
	if err := a.populate(ctx, nodes); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	workload := a.workload
	switch {
	case a.plain:
		workload = a.prompt
	case a.failing:
		workload = a.failures
	case a.owing:
		workload = a.families
	case a.own != nil:
		workload = a.services
	}
	wait, err := workload(working)
	if err != nil {
		return err
	}
	_ = pause(ctx, 3*time.Second)
	left := rest
	if r.Brief || r.Memory {
		left = briefRest
	}
	for _, f := range faults {
		a.phaseOf(f)
		if err := f.run(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if !f.rests {
			_ = pause(ctx, left)
		}
	}
	stop()
	wait()
	return r.judge(ctx, a)
}

// judge lets the cluster end what is due, stops it, and has it audited.
func (r *runner) judge(ctx context.Context, a *arena) error {
	end := now()
	a.phase("settling")
	a.hook.Calm()
	a.mails.Calm()
	if a.own != nil {
		a.own.Calm()
	}
	in, err := a.evidence(ctx, end)
	if err != nil {
		return err
	}
	in.Rules.Refused, in.Rules.Stepped = a.poison, a.clock != ""
	in.Rules.MayForget, in.Rules.Timed, in.Rules.Busy = a.forgets, !r.Short && !r.Brief, !a.alone
	if err := save(a.dir, in); err != nil {
		return err
	}
	return r.report(a, in, end)
}

// report makes a row of each phase.
func (r *runner) report(a *arena, in audit.Input, end int64) error {
	auditor := audit.New(in)
	a.mu.Lock()
	phases, notes := a.phases, a.notes
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	var logs map[string]int64 // of the nodes, as far as they are read
	for i, p := range phases[:len(phases)-1] {
		next := min(phases[i+1].begin, end)
		if next-p.begin < 500_000 {
			continue // the name of a fault whose parts have names of their own
		}
		res := result{name: p.name, took: time.Duration(next-p.begin) * time.Microsecond, report: auditor.Check(p.begin/1000, next/1000)}
		if res.slow = p.slow; p.slow == "" {
			auditor.CheckLateness(res.report)
		}
		until := phases[i+1].logs
		if i == len(phases)-2 {
			res.notes, until = notes, nil
			if !r.Memory && !in.Rules.Stepped { // its rows are read before the stop
				auditor.CheckEnd(res.report, end/1000)
				res.notes = append(res.notes, auditor.CheckLogs(res.report))
			}
		}
		missed, err := missedRuns(a.dir, logs, until)
		if err != nil {
			return err
		}
		res.report.AddMissed(missed)
		logs = until
		r.results = append(r.results, res)
	}
	return nil
}

// save writes the auditor's input down, so that it can be looked at.
func save(dir string, in audit.Input) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "input.json"), text, 0o600)
}

func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Out, "%s %s\n", time.Now().UTC().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func (r *runner) verdict() error {
	for _, res := range r.results {
		if !res.report.OK() {
			return ErrViolated
		}
	}
	return nil
}
