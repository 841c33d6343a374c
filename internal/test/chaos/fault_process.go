//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Faults of processes.

// awaitVictim claims a member, waiting while other faults have all of them.
func (a *arena) awaitVictim(ctx context.Context) (*member, error) {
	for ctx.Err() == nil {
		if m := a.victim(); m != nil {
			return m, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, ctx.Err()
}

// kill ends a process without a word, and starts another in its place: half of the
// time at once, so that it may have its own shards back, and else after the others
// had to take them.
func kill(ctx context.Context, a *arena) error { return killFor(away)(ctx, a) }

func killFor(away time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		m, err := a.awaitVictim(ctx)
		if err != nil {
			return err
		}
		defer m.release()
		return m.kill(ctx, time.Duration(a.intn(2))*away)
	}
}

// away is how long a process is not replaced, so that the others have to take its
// shards.
const away = 2500 * time.Millisecond

func (m *member) kill(ctx context.Context, away time.Duration) error {
	return m.killAs(ctx, audit.Fault{Name: "SIGKILL"}, away)
}

// killAs kills the process and journals it as this fault.
func (m *member) killAs(ctx context.Context, f audit.Fault, away time.Duration) error {
	f.Effect, f.Victim, f.Shards, f.Begin = audit.Dies, m.process(), m.arena.ownedBy(ctx, m), now()
	if err := m.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return m.replace(ctx, f, away)
}

// replace waits for the end of a process and starts the next one, after a while.
func (m *member) replace(ctx context.Context, f audit.Fault, away time.Duration) error {
	err := m.awaitEnd(ctx, 30*time.Second)
	f.Gone = now()
	if err == nil {
		_ = pause(ctx, away)
		err = errors.Join(m.start(), m.awaitReady(ctx, readyPatience))
	}
	f.End = now()
	m.arena.journal.fault(f)
	return err
}

// terminate asks a process to stop, and starts another one in its place.
func terminate(ctx context.Context, a *arena) error {
	m, err := a.awaitVictim(ctx)
	if err != nil {
		return err
	}
	defer m.release()
	return m.terminate(ctx, time.Duration(a.intn(2))*away)
}

func (m *member) terminate(ctx context.Context, away time.Duration) error {
	f := audit.Fault{Name: "SIGTERM", Effect: audit.Leaves, Victim: m.process(), Shards: m.arena.ownedBy(ctx, m), Begin: now()}
	if err := m.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return m.replace(ctx, f, away)
}

// stopFor pauses a process.
func stopFor(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		m, err := a.awaitVictim(ctx)
		if err != nil {
			return err
		}
		defer m.release()
		return m.pauseFor(ctx, d)
	}
}

func (m *member) pauseFor(ctx context.Context, d time.Duration) error {
	return m.pauseAs(ctx, audit.Fault{Name: "SIGSTOP"}, d)
}

// pauseAs pauses the process and journals it as this fault.
func (m *member) pauseAs(ctx context.Context, f audit.Fault, d time.Duration) error {
	f.Effect, f.Victim, f.Shards, f.Begin = audit.Silent, m.process(), m.arena.ownedBy(ctx, m), now()
	m.setMute(true)
	err := m.signal(syscall.SIGSTOP)
	_ = pause(ctx, d)
	err = errors.Join(err, m.signal(syscall.SIGCONT))
	m.setMute(false)
	f.End = now()
	m.arena.journal.fault(f)
	return err
}

// pauseAndKill pauses members one after the other while others are killed. What one pause has
// held up is through before the next one: where each shard goes from one paused member to
// another, its runs are late by the sum, and the bound of the lateness is for one.
func pauseAndKill(pauses int, d time.Duration, kills int) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		errs := make([]error, 2)
		var g sync.WaitGroup
		g.Go(func() { errs[0] = repeat(pauses, 3*time.Second, stopFor(d))(ctx, a) })
		g.Go(func() { errs[1] = repeat(kills, time.Second, killFor(time.Second))(ctx, a) })
		g.Wait()
		return errors.Join(errs...)
	}
}

// joinAndLeave lets nodes come and go: some stop in good order, some are killed.
func joinAndLeave(ctx context.Context, a *arena) error {
	for i := range 6 {
		m, err := a.newMember(fmt.Sprintf("j%d", i+1))
		if err != nil {
			return err
		}
		if err := m.start(); err != nil {
			return err
		}
		m.claim() // for this fault
		a.mu.Lock()
		a.members = append(a.members, m)
		a.mu.Unlock()
		if err := m.awaitReady(ctx, readyPatience); err != nil {
			return err
		}
		_ = pause(ctx, a.between(time.Second, 4*time.Second))
		f := audit.Fault{Name: "SIGTERM", Effect: audit.Leaves, Victim: m.process(), Shards: a.ownedBy(ctx, m), Begin: now()}
		s := syscall.SIGTERM
		if i%2 == 1 {
			f.Name, f.Effect, s = "SIGKILL", audit.Dies, syscall.SIGKILL
		}
		err = errors.Join(m.signal(s), m.awaitEnd(ctx, 30*time.Second))
		f.Gone = now()
		f.End = f.Gone
		a.journal.fault(f)
		if err != nil {
			return err
		}
		_ = pause(ctx, a.between(time.Second, 3*time.Second))
	}
	return nil
}

// stepClocks sets the wall clocks of all nodes to and fro. Nothing may be seen of
// that.
func stepClocks(ctx context.Context, a *arena) error {
	for _, d := range []time.Duration{time.Hour, -time.Hour, 90 * time.Second, -7 * time.Second, 36 * time.Hour, 0} {
		f := audit.Fault{Name: fmt.Sprintf("clock %+v", d), Effect: audit.Harmless, Begin: now()}
		for _, m := range a.all() {
			if !m.claim() {
				continue
			}
			got, err := m.ask(ctx, 5*time.Second, control.Request{Verb: control.Step, StepBy: int64(d)})
			m.release()
			if err == nil {
				err = got.Err()
			}
			if err != nil && m.alive() && !m.isMute() {
				return fmt.Errorf("chaos: step of the clock of %s: %w", m.name, err)
			}
		}
		_ = pause(ctx, a.between(2*time.Second, 4*time.Second))
		f.End = now()
		a.journal.fault(f)
	}
	return nil
}

// mix injects faults at random, two at a time at most. Where it spares, one node is
// well all the time, so that nothing but the database keeps it from taking over from the
// others; else all may be out at once.
func mix(d time.Duration, spares bool) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		a.spares.Store(spares)
		defer a.spares.Store(false)
		short := []func(context.Context, *arena) error{
			kill, kill, kill, exits(1, 5*time.Second), terminate, stopFor(8 * time.Second), stopFor(20 * time.Second),
			restartAtRandom, terminateBackends("lock connection", lockConnections), terminateBackends("all connections", allConnections),
			blackHole(12 * time.Second), halfOpen(12 * time.Second), orphan, reset,
			someFailpoints(1, killAt), someFailpoints(1, stopAt), someFailpoints(1, blackHoleAt),
		}
		deadline := time.Now().Add(d)
		errs := make([]error, 2)
		var g sync.WaitGroup
		for i := range errs {
			g.Go(func() {
				for time.Now().Before(deadline) && ctx.Err() == nil && errs[i] == nil {
					errs[i] = short[a.intn(len(short))](ctx, a)
					_ = pause(ctx, a.between(0, 4*time.Second))
				}
			})
		}
		g.Wait()
		return errors.Join(errs...)
	}
}
