//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/failpoint"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Faults at every durable step: inside of each transaction of the store and right
// behind it.

// hitPatience is how long a failpoint has to be reached, after what leads to it was
// set going: another node's death, for some.
const hitPatience = 9 * time.Second

// unreached are failpoints that no cluster without remote executors
// (readdress, dispatched) or readers of logs (ask_log, answer_log) reaches, or that
// are the caller's own commit.
func unreached(name string) bool {
	method, place, _ := strings.Cut(name, ".")
	return method == "readdress" || method == "dispatched" || method == "ask_log" || method == "answer_log" || method == "trigger_tx" && place != failpoint.Begin
}

// everyFailpoint kills a process at each failpoint in turn.
func everyFailpoint(ctx context.Context, a *arena) error {
	var missed []string
	for _, name := range slices.DeleteFunc(failpoint.All(), unreached) {
		hit, err := killAt(ctx, a, name)
		if err != nil {
			return err
		}
		if !hit {
			missed = append(missed, name)
		}
		_ = pause(ctx, a.between(0, 300*time.Millisecond))
	}
	reachable := len(slices.DeleteFunc(failpoint.All(), unreached))
	a.note("killed at %d of %d failpoints; not reached: %s", reachable-len(missed), reachable, strings.Join(missed, " "))
	return nil
}

// everyFollowPoint kills a process three times at each failpoint of what ends a run: the
// transaction that does so inserts the run that follows.
func everyFollowPoint(ctx context.Context, a *arena) error {
	return killAtEach(ctx, a, "finish", "settle", "start")
}

// everyOwedPoint kills a process three times at each failpoint of what follows a success, and
// of what tells of a failure: what is owed is written, paid, or over, and alarms are added and
// done with.
func everyOwedPoint(ctx context.Context, a *arena) error {
	return killAtEach(ctx, a, "finish", "pay_owed", "expire_windows", "add_late", "mark_alarms")
}

// killAtEach kills a process three times at each failpoint of the methods.
func killAtEach(ctx context.Context, a *arena, methods ...string) error {
	var hits []string
	for _, method := range methods {
		for _, place := range failpoint.Places() {
			n := 0
			for tries := 0; n < 3 && tries < 6; tries++ {
				hit, err := killAt(ctx, a, method+"."+place)
				if err != nil {
					return err
				}
				if hit {
					n++
				}
				_ = pause(ctx, a.between(0, 300*time.Millisecond))
			}
			hits = append(hits, fmt.Sprintf("%s.%s %d times", method, place, n))
		}
	}
	a.note("killed at %s", strings.Join(hits, ", "))
	return nil
}

// someFailpoints injects a fault at n failpoints, chosen at random from those that
// every cluster reaches.
func someFailpoints(n int, f func(context.Context, *arena, string) (bool, error)) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		names := slices.DeleteFunc(failpoint.All(), func(name string) bool {
			return unreached(name) || strings.HasPrefix(name, "join.")
		})
		for range n {
			if _, err := f(ctx, a, names[a.intn(len(names))]); err != nil {
				return err
			}
			_ = pause(ctx, a.between(500*time.Millisecond, 2*time.Second))
		}
		return nil
	}
}

// killAt kills a process at a failpoint. It reports whether the point was reached.
func killAt(ctx context.Context, a *arena, name string) (bool, error) {
	return a.at(ctx, name, failpoint.Kill, func(m *member, f audit.Fault) error {
		f.Effect = audit.Dies
		return m.replace(ctx, f, 0)
	})
}

// stopAt pauses a process at a failpoint, for longer than its lease.
func stopAt(ctx context.Context, a *arena, name string) (bool, error) {
	return a.at(ctx, name, failpoint.Stop, func(m *member, f audit.Fault) error {
		f.Effect = audit.Silent
		m.setMute(true)
		_ = pause(ctx, a.between(3*time.Second, 12*time.Second))
		err := m.signal(syscall.SIGCONT)
		m.setMute(false)
		f.End = now()
		a.journal.fault(f)
		return err
	})
}

// blackHoleAt cuts a process off while it is at a failpoint.
func blackHoleAt(ctx context.Context, a *arena, name string) (bool, error) {
	if a.all()[0].proxy == nil {
		return false, nil
	}
	return a.at(ctx, name, failpoint.Block, func(m *member, f audit.Fault) error {
		f.Effect = audit.Silent
		m.setMute(true)
		m.proxy.BlackHole()
		err := m.arm() // releases it
		_ = pause(ctx, a.between(3*time.Second, 12*time.Second))
		m.proxy.Heal()
		m.setMute(false)
		f.End = now()
		a.journal.fault(f)
		return err
	})
}

// at arms a failpoint in one process, sets going what leads to it, and does
// something once it is reached.
func (a *arena) at(ctx context.Context, name string, action failpoint.Action, do func(*member, audit.Fault) error) (bool, error) {
	m, err := a.awaitVictim(ctx)
	if err != nil {
		return false, err
	}
	defer m.release()
	f := audit.Fault{Name: fmt.Sprintf("%s at %s", action, name), Victim: m.process(), Shards: a.ownedBy(ctx, m)}
	before := m.hits()
	if err := m.arm(failpoint.Rule{Name: name, At: 1, Action: action}); err != nil {
		return false, err
	}
	method, _, _ := strings.Cut(name, ".")
	var provoked sync.WaitGroup
	provoked.Go(func() { a.provoke(ctx, m, method) })
	hit := m.awaitHit(ctx, before)
	f.Begin = now()
	if method == "join" || method == "leave" || method == "release" {
		f.Victim = m.process() // provoking began another process, or ended this one
	}
	if hit {
		err = errors.Join(err, m.armIf(action != failpoint.Block), do(m, f))
	}
	provoked.Wait()
	err = errors.Join(err, m.arm())
	if leaving := method == "leave" || method == "release"; leaving && !(hit && action == failpoint.Kill) {
		err = errors.Join(err, m.awaitEnd(ctx, 30*time.Second))
	}
	if !m.alive() { // it left by itself
		f.Name, f.Effect, f.Shards = "SIGTERM", audit.Leaves, nil // how fast it left is not the question
		err = errors.Join(err, m.replace(ctx, f, 0))
	}
	return hit, err
}

// armIf takes rules back where that is asked for.
func (m *member) armIf(clear bool) error {
	if !clear {
		return nil
	}
	return m.arm()
}

// arm replaces the rules of the process.
func (m *member) arm(rules ...failpoint.Rule) error {
	var text strings.Builder
	for _, r := range rules {
		fmt.Fprintln(&text, r)
	}
	fresh := m.pointsFile() + ".new"
	if err := os.WriteFile(fresh, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, m.pointsFile())
}

// hits is how many rules were carried out so far.
func (m *member) hits() int {
	text, _ := os.ReadFile(m.pointsFile() + ".hits")
	return strings.Count(string(text), "\n")
}

// awaitHit waits until a rule is carried out.
func (m *member) awaitHit(ctx context.Context, before int) bool {
	for deadline := time.Now().Add(hitPatience); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if m.hits() > before {
			return true
		}
	}
	return false
}

// provoke leads the process to a method of its store that it does not call by
// itself. What it asks the node for is journalled as any operation is.
func (a *arena) provoke(ctx context.Context, m *member, method string) {
	switch method {
	case "join":
		_ = m.kill(ctx, 0)
	case "leave", "release":
		_ = m.signal(syscall.SIGTERM)
	case "take_shards", "settle", "bury", "sweep":
		// Another node dies; its shards and runs are taken over by this one too.
		if other := a.victim(); other != nil {
			_ = other.kill(ctx, 7*time.Second) // longer than its lease
			other.release()
		}
	case "add_job", "edit_job", "remove_job":
		a.provokeEdit(ctx, m)
	case "add_run":
		a.trigger(ctx, m, a.manual[0], false)
	case "add_ahead":
		a.trigger(ctx, m, a.apart[0], true)
	case "move_ahead": // of some shard
		for _, job := range a.apart {
			a.trigger(ctx, nil, job, true)
		}
	case "kill":
		a.provokeKill(ctx, m)
	case "trigger_tx":
		a.transaction(ctx, m, a.manual[0], true)
	}
}

// provokeEdit has the node itself add, change and remove a job. Each operation is
// tried there once, and then anywhere until it is answered.
func (a *arena) provokeEdit(ctx context.Context, m *member) {
	d := control.Job{Name: fmt.Sprintf("provoked %d", a.serial.Add(1)), Kind: control.Cron, Period: 1000, Route: "NEAREST"}
	id, err := a.ensure(ctx, m, d, false)
	if err != nil {
		return
	}
	d.Period = 2000
	a.change(ctx, m, control.Request{Verb: control.Update, ID: id, Job: d}, grid(d, 0))
	a.change(ctx, m, control.Request{Verb: control.Remove, ID: id}, audit.Grid{})
}

// provokeKill has the node trigger a long run and kill it.
func (a *arena) provokeKill(ctx context.Context, m *member) {
	key := fmt.Sprintf("kill-%d", a.serial.Add(1))
	got, _, ok := a.insist(ctx, nil, control.Request{Verb: control.Trigger, ID: a.manual[0], Param: "takes=10000", Key: key})
	if !ok {
		return
	}
	a.kill(ctx, m, a.manual[0], got.Run)
}
