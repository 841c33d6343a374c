//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
	"github.com/xxljob/xxljob/internal/test/chaos/sink"
)

// Two services that share a database and its schema: each with its own app, and its own nodes, which
// schedule for both. The second has an alarm rule for its own app, told at a sink of its own, and a
// router that no node of the first knows.

const (
	// second is the app of the second service, and secondNodes how many nodes it has.
	second      = "second"
	secondNodes = 2
	// router is what it calls its router.
	router = "LAST_OR_FIRST"
)

// openServices is a database that two services share.
func openServices(ctx context.Context, a *arena) (err error) {
	if a.own, err = sink.ListenHTTP("own", 1); err != nil {
		return err
	}
	a.later = append(a.later, a.own.Close)
	return a.openPrimary(ctx)
}

// ofServices are the jobs of both. Those whose handlers fail for good make alarms.
func ofServices() (jobs []control.Job) {
	add := func(n int, j control.Job) {
		name := j.Name
		for i := range n {
			j.Name = fmt.Sprintf("%s %d", name, i)
			jobs = append(jobs, j)
		}
	}
	cron := func(name, route string) control.Job {
		return control.Job{App: app, Name: name, Kind: control.Cron, Period: 1000, Route: route}
	}
	fails := func(j control.Job) control.Job {
		j.Period, j.Param, j.Retries, j.Pause, j.Rerun = 2000, control.Chain+" services ffffff", 1, 200, true
		return j
	}
	of := func(nobody string, j control.Job) control.Job {
		j.App, j.Nobody = second, nobody
		return j
	}
	once := of(audit.NobodyWait, cron("waits, fires once", "ROUND"))
	once.FireOnce = true
	add(4, cron("first", "ROUND"))
	add(2, fails(cron("first, fails", "ROUND")))
	add(3, of(audit.NobodyWait, cron("waits", "ROUND")))
	add(3, once)
	add(3, of(audit.NobodyRefuse, cron("refuses", "ROUND")))
	add(4, of(audit.NobodyWait, cron("chosen", router)))
	add(2, fails(of(audit.NobodyWait, cron("chosen, fails", router))))
	return jobs
}

// services is their workload.
func (a *arena) services(ctx context.Context) (wait func(), err error) {
	for _, d := range ofServices() {
		var m *member
		if d.App == second {
			m = a.ofSecond()[0]
		}
		if _, err := a.ensure(ctx, m, d, false); err != nil {
			return nil, err
		}
	}
	return func() {}, nil
}

// ofSecond are the nodes of the second service.
func (a *arena) ofSecond() (all []*member) {
	for _, m := range a.all() {
		if m.app == second {
			all = append(all, m)
		}
	}
	return all
}

// serviceAway ends all nodes of the second service: for a moment, for longer than its runs wait for
// it that are to be refused, and for longer than the misfire threshold.
func serviceAway(ctx context.Context, a *arena) error {
	for _, one := range []struct {
		d      time.Duration
		name   string
		effect string
		signal syscall.Signal
	}{
		{4 * time.Second, "SIGTERM", audit.Leaves, syscall.SIGTERM},
		{45 * time.Second, "SIGKILL", audit.Dies, syscall.SIGKILL},
		{20 * time.Second, "SIGTERM", audit.Leaves, syscall.SIGTERM},
	} {
		var faults []audit.Fault
		away := audit.Fault{Name: "no process of " + second, Effect: audit.Absent, App: second}
		members := a.ofSecond()
		for _, m := range members {
			if !m.claim() {
				return fmt.Errorf("chaos: %s is the victim of another fault", m.name)
			}
			f := audit.Fault{Name: one.name, Effect: one.effect, Victim: m.process(), Shards: a.ownedBy(ctx, m), Begin: now()}
			if err := m.signal(one.signal); err != nil {
				return err
			}
			away.Begin = now()
			faults = append(faults, f)
		}
		var errs []error
		for i, m := range members {
			errs = append(errs, m.awaitEnd(ctx, 30*time.Second))
			faults[i].Gone = now()
		}
		_ = pause(ctx, one.d)
		for _, m := range members {
			errs = append(errs, m.start())
		}
		for i, m := range members {
			errs = append(errs, m.awaitReady(ctx, readyPatience))
			faults[i].End = now()
			a.journal.fault(faults[i])
			m.release()
		}
		away.End = now()
		a.journal.fault(away)
		if err := errors.Join(errs...); err != nil {
			return err
		}
		_ = pause(ctx, 3*time.Second)
	}
	return ctx.Err()
}
