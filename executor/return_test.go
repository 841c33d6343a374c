package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// What an admin does with a registration until it returns.
const (
	refusing = "refusing" // answers, with a refusal
	absent   = "absent"   // fails at once
	hanging  = "hanging"  // never answers what it got before its return
	slow     = "slow"     // answers well after 5 s
	well     = "well"
)

// fickle is a node of an admin, or an admin of one node.
type fickle struct {
	admin

	mu    sync.Mutex
	state string    // guarded by mu
	taken time.Time // guarded by mu: the first registration that it has taken
	asked int       // guarded by mu
}

func (f *fickle) Registry(ctx context.Context, _ wire.RegistryRequest) (wire.Return, error) {
	f.mu.Lock()
	f.asked++
	state := f.state
	if state == well && f.taken.IsZero() {
		f.taken = time.Now()
	}
	f.mu.Unlock()
	switch state {
	case refusing:
		return wire.Failf(wire.MsgTokenWrong), nil
	case absent:
		return wire.Return{}, errBoom
	case hanging:
		ctx, cancel := context.WithTimeout(ctx, 6*time.Second) // the default of Config.CallTimeout
		defer cancel()
		<-ctx.Done()
		return wire.Return{}, ctx.Err()
	case slow:
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return wire.Return{}, ctx.Err()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.taken.IsZero() {
			f.taken = time.Now()
		}
	}
	return wire.Success(), nil
}

// returns makes it well.
func (f *fickle) returns() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = well
}

// told is when it took its first registration; false for never.
func (f *fickle) told() (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken, !f.taken.IsZero()
}

// attempts is how often it was asked to take one.
func (f *fickle) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// mixes are all that n admins can be.
func mixes(n int) [][]string {
	if n == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for _, m := range mixes(n - 1) {
		for _, state := range []string{refusing, absent, hanging, well} {
			all = append(all, append(slices.Clone(m), state))
		}
	}
	return all
}

// awayFor are moments of a return after the start: while the pauses grow, and all
// through those that do not grow any more.
func awayFor() []time.Duration {
	moments := []time.Duration{time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6100 * time.Millisecond}
	for i := range 12 {
		moments = append(moments, 3*time.Minute+time.Duration(i)*700*time.Millisecond)
	}
	return moments
}

// TestRegistersSoonWhateverTheOthersDo has admins of one to three nodes, and one to three
// admins, in all mixes of refusing, away and well, and one of them return at some moment.
// That some refuse says nothing of those that are away, and that one hangs does not keep
// the others waiting.
func TestRegistersSoonWhateverTheOthersDo(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, states := range mixes(n) {
			t.Run("nodes "+strings.Join(states, ","), func(t *testing.T) {
				for back := range states {
					for _, away := range awayFor() {
						synctest.Test(t, func(t *testing.T) { oneReturns(t, states, back, away, false) })
					}
				}
			})
			t.Run("admins "+strings.Join(states, ","), func(t *testing.T) {
				for back := range states {
					synctest.Test(t, func(t *testing.T) { oneReturns(t, states, back, 3*time.Minute, true) })
				}
			})
		}
	}
}

// oneReturns starts an executor, has one return after away, and looks when each admin was
// told: one of its nodes is enough.
func oneReturns(t *testing.T, states []string, back int, away time.Duration, each bool) {
	var nodes []*fickle
	var admins [][]int // of each, its nodes
	cfg := executor.Config{Address: self, Logger: slog.New(slog.DiscardHandler)}
	for i, state := range states {
		nodes = append(nodes, &fickle{state: state})
		if i == 0 || each {
			cfg.Admins = append(cfg.Admins, executor.AdminCluster{Name: fmt.Sprint("admin", i)})
			admins = append(admins, nil)
		}
		last := len(admins) - 1
		cfg.Admins[last].Addresses = append(cfg.Admins[last].Addresses, fmt.Sprint(i))
		admins[last] = append(admins[last], i)
	}
	e, err := executor.NewOver(cfg, func(addr string) wire.Admin { return nodes[addr[0]-'0'] })
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	start(t, e)
	time.Sleep(away)
	nodes[back].returns()
	returned := time.Now()
	time.Sleep(time.Minute)
	synctest.Wait()
	for k, of := range admins {
		since, most := began, 5*time.Second
		is := func(state string) bool {
			return slices.ContainsFunc(of, func(i int) bool { return states[i] == state })
		}
		switch {
		case is(well):
		case !slices.Contains(of, back):
			continue
		case is(absent) || is(hanging):
			since = returned
		default: // all refuse
			since, most = returned, 30*time.Second
		}
		if d, ok := firstTold(nodes, of, since); !ok || d > most {
			t.Errorf("%s back after %v, number %d: admin %d was told %v after, want within %v", states[back], away, back, k, d, most)
		}
	}
	for i, f := range nodes {
		if most := int(4 + (away+time.Minute)/(2500*time.Millisecond)); f.attempts() > most {
			t.Errorf("number %d back after %v: number %d was asked %d times, want %d at most", back, away, i, f.attempts(), most)
		}
	}
	stop(t, e)
}

// firstTold is how long after an instant the first of some nodes has taken a registration.
func firstTold(nodes []*fickle, of []int, since time.Time) (first time.Duration, ok bool) {
	for _, i := range of {
		if at, told := nodes[i].told(); told && (!ok || at.Sub(since) < first) {
			first, ok = at.Sub(since), true
		}
	}
	return first, ok
}

// TestASlowAdmin: an admin that needs longer for its answer than lies between two attempts
// gets its registrations, and is not asked without end.
func TestASlowAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fickle{state: slow}
		cfg := executor.Config{Address: self, Logger: slog.New(slog.DiscardHandler),
			Admins: []executor.AdminCluster{{Name: "slow", Addresses: []string{"0"}}}}
		e, err := executor.NewOver(cfg, func(string) wire.Admin { return f })
		if err != nil {
			t.Fatal(err)
		}
		start(t, e)
		time.Sleep(25 * time.Second)
		if _, told := f.told(); !told || f.attempts() != 2 {
			t.Errorf("it has a registration: %v; it was asked %d times, want 2", told, f.attempts())
		}
		time.Sleep(30 * time.Second)
		if n := f.attempts(); n != 4 {
			t.Errorf("a beat later: it was asked %d times, want 4", n)
		}
		stop(t, e)
	})
}

// TestASlowAdminBehindOthersThatHang: the last node of an admin has as long for its answer
// as the first, and its registration is taken by the first attempt.
func TestASlowAdminBehindOthersThatHang(t *testing.T) {
	for hang := 1; hang <= 4; hang++ {
		synctest.Test(t, func(t *testing.T) {
			nodes := map[string]*fickle{}
			cfg := executor.Config{Address: self, Logger: slog.New(slog.DiscardHandler), Admins: []executor.AdminCluster{{Name: "one"}}}
			for i := range hang + 1 {
				at := fmt.Sprint(i)
				nodes[at] = &fickle{state: hanging}
				cfg.Admins[0].Addresses = append(cfg.Admins[0].Addresses, at)
			}
			last := nodes[fmt.Sprint(hang)]
			last.state = slow
			e, err := executor.NewOver(cfg, func(addr string) wire.Admin { return nodes[addr] })
			if err != nil {
				t.Fatal(err)
			}
			start(t, e)
			time.Sleep(8 * time.Second)
			if _, told := last.told(); !told {
				t.Errorf("behind %d that hang: no registration; it was asked %d times", hang, last.attempts())
			}
			stop(t, e)
		})
	}
}

// TestAResultTellsThatAnAdminIsAway also where another of its nodes refuses the result.
func TestAResultTellsThatAnAdminIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admins{}
		strict, memory := newNode(), newNode()
		strict.refuse(wire.MsgTokenWrong)
		strict.answer = func([]wire.CallbackRequest) (wire.Return, error) { return wire.Failf(wire.MsgTokenWrong), nil }
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", strict, memory)}})
		handle(t, e, "h", noop)
		start(t, e)
		time.Sleep(time.Second)
		memory.set(true)
		mustGive(t, e, "one", req(1, 1))
		time.Sleep(20 * time.Second) // the next beat is 9 s from here
		memory.set(false)
		back := time.Now()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := memory.beats(); got[len(got)-1].at.Before(back) {
			t.Errorf("no registration within 5 s; the last was %v before", back.Sub(got[len(got)-1].at))
		}
		stop(t, e)
	})
}
