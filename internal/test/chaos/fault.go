//go:build unix

package chaos

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// fault is an entry of the catalogue.
type fault struct {
	name string
	// run injects it and takes it back. An error is one of the test itself.
	run func(context.Context, *arena) error
	// unit names the faults that are injected into one cluster after the other.
	unit string
	// open makes the database, where the usual one will not do.
	open func(context.Context, *arena) error
	// lease is the mode in which the nodes of its unit hold their shards. Empty means
	// leaseLock.
	lease string
	// pool is how many connections the pool of a node of its unit has at most, 0 for
	// pgx's default; bare says that it has no reserve beside them.
	pool int
	bare bool
	// failing says that the jobs of its unit are those whose handlers fail.
	failing bool
	// owing says that they are those that lead to others.
	owing bool
	// rests says that the fault leaves the cluster alone before it returns.
	rests bool
	// slow says why the starts in its time may be later than Rules.Lateness: it holds
	// all of a cluster's rows, or its database, for longer. Empty where they may not.
	slow string
}

// phase is the stretch of time that belongs to one fault, and the rest after it.
type phase struct {
	name  string
	begin int64 // microseconds
	slow  string
	logs  map[string]int64 // of the nodes, and how long they were
}

// phase begins the next phase.
func (a *arena) phase(name string) {
	a.say("%s", name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phases = append(a.phases, phase{name, now(), a.slow, logSizes(a.dir)})
}

// phaseOf begins the phase of a fault.
func (a *arena) phaseOf(f fault) {
	a.mu.Lock()
	a.slow = f.slow
	a.mu.Unlock()
	a.phase(f.name)
}

// catalogue is all faults, each of them alone, and all at random.
func catalogue(c Config) []fault {
	all := []fault{
		{name: "sigkill", unit: unitProcesses, run: repeat(20, time.Second, kill)},
		{name: "sigstop", unit: unitProcesses, run: repeat(3, 3*time.Second, stopFor(20*time.Second))},
		{name: "sigterm", unit: unitProcesses, run: repeat(6, 2*time.Second, terminate)},
		{name: "join-leave", unit: unitProcesses, run: joinAndLeave},
		{name: "clock-steps", unit: unitProcesses, run: stepClocks},

		{name: "os-exit", unit: "exits", run: exits(3, 45*time.Second)},

		{name: "restart-immediate", unit: "database", run: repeat(3, 6*time.Second, restart(pgtest.Immediate))},
		{name: "restart-fast", unit: "database", run: repeat(3, 6*time.Second, restart(pgtest.Fast))},
		{name: "terminate-lock-connection", unit: "database", run: repeat(5, 3*time.Second, terminateBackends("lock connection", lockConnections))},
		{name: "terminate-all-connections", unit: "database", run: repeat(5, 3*time.Second, terminateBackends("all connections", allConnections))},
		{name: "row-locks", unit: "database", run: lockRows(10 * time.Second),
			slow: "nobody can write the rows for 10 s"},
		{name: "pg-dump", unit: "database", run: dump(20 * time.Second)},

		{name: "black-hole", unit: "network", run: repeat(2, 5*time.Second, blackHole(20*time.Second))},
		{name: "black-hole-all", unit: "network", run: blackHoleAll(10 * time.Second),
			slow: "nobody reaches the database for 10 s"},
		{name: "half-open", unit: "network", run: repeat(2, 5*time.Second, halfOpen(15*time.Second))},
		{name: "orphan", unit: "network", run: repeat(2, 5*time.Second, orphan)},
		{name: "reset", unit: "network", run: repeat(5, 2*time.Second, reset)},
		{name: "delay", unit: "network", run: delay(500*time.Millisecond, 14*time.Second),
			slow: "each statement takes a second for 14 s, and the runs of a serial job need three of them, one after the other"},

		{name: "failpoint-kill", unit: unitFailpoints, run: everyFailpoint},
		{name: "failpoint-follow", unit: "follow", failing: true, run: everyFollowPoint},
		{name: "failpoint-owed", unit: "owed", owing: true, run: everyOwedPoint},
		{name: "failpoint-stop", unit: "failpoints 2", run: someFailpoints(10, stopAt)},
		{name: "failpoint-black-hole", unit: "failpoints 2", run: someFailpoints(10, blackHoleAt)},

		{name: "promotion-synchronous", unit: "synchronous", open: openSynchronous, run: promote},
		{name: "promotion-asynchronous", unit: "asynchronous", open: openAsynchronous, run: promote,
			slow: "the promoted server has forgotten the ends of runs, and for 10 s (the longest call and a LeaseTTL) nobody can be certain that they are not under way"},
	}
	all = append(all,
		fault{name: "demotion", unit: "demoted", open: openDemoted, run: demote,
			slow: "nobody can write for some 15 s"},
		fault{name: "poison", unit: "poisoned", open: openPoisoned, run: poison(60 * time.Second)},
		fault{name: "server-clock", unit: "clock", open: openStepped, run: stepServer},
		fault{name: "balancer", unit: "remote", open: openRemote, run: balance(60 * time.Second)},
		fault{name: "wall", unit: "remote", open: openRemote, run: wall(40 * time.Second)},
		fault{name: "wall-back", unit: "remote", open: openRemote, run: wallBack(40 * time.Second)},
		fault{name: "wall-behind", unit: "remote", open: openRemote, run: wallBehind(40 * time.Second)},
		fault{name: "no-zones", unit: "zones", open: openZones, run: blind(2, 25*time.Second)})
	all = append(all,
		fault{name: "service-sigkill", unit: "services", open: openServices, run: repeat(6, time.Second, kill)},
		fault{name: "service-sigstop", unit: "services", open: openServices, run: stopFor(8 * time.Second)},
		fault{name: "service-black-hole", unit: "services", open: openServices, run: blackHole(12 * time.Second)},
		fault{name: "service-away", unit: "services", open: openServices, run: serviceAway,
			slow: "the runs of a service that is away for 45 s wait for it"})
	all = append(all, routeFaults(leaseLock, unitLock)...)
	all = append(all, routeFaults(leaseRow, unitRow)...)
	all = append(all,
		fault{name: "pool-held", unit: unitPool, pool: 4, rests: true, run: holdPool(30 * time.Second)},
		fault{name: "pool-held-without", unit: unitPoolBare, pool: 4, bare: true, rests: true, run: holdPool(30 * time.Second)})
	for i, name := range []string{"lock-1", "lock-2", "lock-3"} {
		all = append(all, fault{name: name, unit: name, run: lockTables(i, 3, 60*time.Second),
			slow: "nobody can use the table for up to 60 s"})
	}
	return append(all,
		fault{name: "mixed", unit: "mixed", run: mix(c.Mixed, true)},
		fault{name: "mixed-all", unit: "mixed-all", run: mix(c.Mixed, false),
			slow: "all nodes may be out at once, and who comes back has to watch the others for a LeaseTTL first"},
	)
}

// shortFaults is the short form: at least twenty kills, three pauses and two crashes of the
// database, in about two minutes.
func shortFaults() []fault { return fewFaults(20, 3, 2, 6*time.Second) }

// briefFaults is that of make test, each fault of the short form once or twice.
func briefFaults() []fault { return fewFaults(4, 1, 1, 4*time.Second) }

// fewFaults are so many of each, half of the kills while a process is paused, and for so long
// handlers that end their process.
func fewFaults(kills, pauses, crashes int, exiting time.Duration) []fault {
	return []fault{
		{name: "short-sigkill", unit: "short", run: repeat(kills/2, 300*time.Millisecond, killFor(time.Second))},
		{name: "short-sigstop-and-sigkill", unit: "short", run: pauseAndKill(pauses, 7*time.Second, kills/2)},
		{name: "short-restart-immediate", unit: "short", run: repeat(crashes, 4*time.Second, restart(pgtest.Immediate))},
		{name: "short-os-exit", unit: "short", run: exits(2, exiting)},
	}
}

// memoryFaults are what a single node over a store in memory survives.
func memoryFaults() []fault {
	return []fault{
		{name: "nothing", unit: "memory", run: idle(5 * time.Second)},
		{name: "sigstop", unit: "memory", run: stopFor(3 * time.Second)},
	}
}

// repeat injects a fault n times, with a rest in between.
func repeat(n int, rest time.Duration, f func(context.Context, *arena) error) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		for range n {
			if err := f(ctx, a); err != nil {
				return err
			}
			if !pause(ctx, a.between(rest/2, rest*3/2)) {
				return ctx.Err()
			}
		}
		return nil
	}
}

// idle does nothing.
func idle(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, _ *arena) error {
		_ = pause(ctx, d)
		return nil
	}
}

// within is how long scheduling may take to be back after a lock or a slow
// database is gone.
const within = 2000

// blocked injects a fault of the database and journals it.
func (a *arena) blocked(name string, bound int64, do func() error) error {
	return a.blockedBy(audit.Fault{Name: name, Within: bound}, do)
}

// blockedBy injects it and journals it as this fault.
func (a *arena) blockedBy(f audit.Fault, do func() error) error {
	f.Effect, f.Begin, f.Again = audit.Blocked, now(), true
	err := do()
	f.End = now()
	a.journal.fault(f)
	return err
}
