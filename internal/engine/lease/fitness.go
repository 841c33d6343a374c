package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// Whether this node can do what it has shards for. Input: how its claims and starts went,
// from scan/scan.go, dispatch/start.go and dispatch/unconfirmed.go, and whether it beats. Output: whether it has
// failed for so long that others are to have its shards, to lease.go; and what to say to
// those who ask whether it is ready.

// Fitness is what a node knows of its own claims and starts. While it fails, an attempt
// that changes nothing shows whether it would succeed again.
type Fitness struct {
	ttl  time.Duration
	wake loop.Wake // of who judges

	mu             sync.Mutex
	Claims, Starts effort        // guarded by mu
	Trials         [2]effort     // guarded by mu: claims and starts that change nothing
	state          failure       // guarded by mu
	why            error         // guarded by mu: the last failure
	silence        error         // guarded by mu: why the last beat failed; nil where it did not
	masked         bool          // guarded by mu: claims or starts have failed although trials succeeded
	wanted         time.Duration // guarded by mu: for how long all has to succeed
	recovered      time.Time     // guarded by mu: when it last had
	better         period        // guarded by mu: while it fails, from the first success after the last failure to the last one; zero for none
}

// failure is whether a node fails, and since when.
type failure struct {
	now   bool
	since time.Time
}

// period is from one moment to another.
type period struct{ since, until time.Time }

// effort is how calls of one kind went, in a row.
type effort struct {
	what  string
	began time.Time // of the attempt under way; zero for none
	since time.Time // when the first of the attempts began that all have failed; zero for none
	until time.Time // when the last of them failed
	err   error     // why
}

func NewFitness(ttl time.Duration, wake loop.Wake) *Fitness {
	return &Fitness{ttl: ttl, wake: wake, wanted: ttl, Claims: effort{what: "claims"}, Starts: effort{what: "starts"}}
}

// longestGood bounds how long all has to succeed after many relapses.
const longestGood = 5 * time.Minute

// row is how far apart two failures may be that are in a row: no attempt, and no pause
// after one, takes as long.
func (f *Fitness) row() time.Duration { return f.ttl + loop.CallTimeout }

// Begin notes that an attempt begins, and returns when, for end.
func (f *Fitness) Begin(e *effort) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !f.lately(e, now) {
		e.since = time.Time{}
	}
	e.began = now
	return now
}

// End notes how the attempt went that began at a time. One that was cut short by the end
// of ctx says nothing.
func (f *Fitness) End(ctx context.Context, e *effort, began time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	e.leave(began)
	switch {
	case err == nil:
		e.since = time.Time{}
	case ctx.Err() != nil:
	default:
		if e.since.IsZero() {
			e.since = began
		}
		e.until, e.err, f.why = now, err, err
		// What changes nothing may succeed where what does cannot: no row is written.
		f.masked = !f.isTrial(e) && (f.masked || !f.better.since.IsZero() && began.After(f.better.since))
		f.better.since = time.Time{}
		f.wake.PokeIf(!f.state.now && f.throughout(e, now))
	}
}

func (f *Fitness) isTrial(e *effort) bool { return e == &f.Trials[0] || e == &f.Trials[1] }

// Over notes that the attempt is over which began at a time, and says nothing.
func (f *Fitness) Over(e *effort, began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.leave(began)
}

func (e *effort) leave(began time.Time) {
	if e.began.Equal(began) {
		e.began = time.Time{}
	}
}

// lately reports whether attempts have failed, and the last of them not long ago. Called
// with mu held.
func (f *Fitness) lately(e *effort, now time.Time) bool {
	return !e.since.IsZero() && now.Sub(e.until) < f.row()
}

// throughout reports whether attempts have failed throughout a LeaseTTL, and do to this
// moment, as far as it is known. Called with mu held.
func (f *Fitness) throughout(e *effort, now time.Time) bool {
	last := e.until
	if !e.began.IsZero() {
		last = now
	}
	return f.lately(e, now) && last.Sub(e.since) >= f.ttl
}

// Silent notes that the node could not beat: then it is not its claims and starts that
// fail but all it does, and others see that by its silence.
func (f *Fitness) Silent(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silence = err
	f.Claims.since, f.Starts.since, f.better.since = time.Time{}, time.Time{}, time.Time{}
}

// Silence is why the last beat failed, where it did.
func (f *Fitness) Silence() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.silence
}

// selfVerdict is what a node thinks of itself.
type selfVerdict struct {
	Failing bool // its claims or starts have failed throughout a LeaseTTL, and since then not all has succeeded for as long as is wanted
	better  bool // all that it has tried of late has succeeded
}

// Judge is called after each beat.
func (f *Fitness) Judge() selfVerdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.silence = nil
	switch {
	case !f.state.now:
		f.state.now, f.better.since = f.throughout(&f.Claims, now) || f.throughout(&f.Starts, now), time.Time{}
		if f.state.now {
			f.state.since = now.Add(-f.ttl)
			f.relapsed(now)
		}
	case f.isGood():
		f.state.now, f.recovered = false, now
		f.Claims.since, f.Starts.since = time.Time{}, time.Time{} // what was before counts no more
	}
	return selfVerdict{f.state.now, !f.better.since.IsZero()}
}

// relapsed doubles the time for which all has to succeed where it has not been well for
// long: else the shards would go to and fro with each try. Called with mu held.
func (f *Fitness) relapsed(now time.Time) {
	if !f.recovered.IsZero() && now.Sub(f.recovered) < 10*f.wanted {
		f.wanted = min(2*f.wanted, max(longestGood, f.ttl))
	} else {
		f.wanted = f.ttl
	}
}

// isGood is called with mu held.
func (f *Fitness) isGood() bool {
	return !f.better.since.IsZero() && f.better.until.Sub(f.better.since) >= f.wanted
}

// Fails reports what judge did.
func (f *Fitness) Fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.now
}

// Good notes that all that was tried has succeeded. That says nothing while claims or
// starts that do change something fail all the same.
func (f *Fitness) Good() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.better.until = time.Now()
	if f.masked = f.masked && (f.lately(&f.Claims, f.better.until) || f.lately(&f.Starts, f.better.until)); f.masked {
		return
	}
	if f.better.since.IsZero() {
		f.better.since = f.better.until
	}
	f.wake.PokeIf(f.state.now && f.isGood())
}

// Troubled reports whether the last claim or start has failed, or takes so long that it
// will.
func (f *Fitness) Troubled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, e := range []*effort{&f.Claims, &f.Starts, &f.Trials[0], &f.Trials[1]} {
		if f.lately(e, now) || !e.began.IsZero() && now.Sub(e.began) > f.ttl/5 {
			return true
		}
	}
	return false
}

// Err is what is wrong with the node's claims or starts; nil where they succeed. A
// failure by itself is none: what it left open may have been settled since. Failures are
// forgiven for so long as the patience says, and a fifth of a LeaseTTL, unless other nodes have
// the shards.
func (f *Fitness) Err(rests bool, patience time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, e := range []*effort{&f.Claims, &f.Starts} {
		failed := e.until.Sub(e.since).Round(time.Millisecond)
		switch {
		case !f.lately(e, now):
		case rests && f.better.since.IsZero():
			return fmt.Errorf("%s fail, and other nodes have the shards: %w", e.what, e.err)
		case !rests && failed > max(f.ttl/5, patience):
			return fmt.Errorf("%s have failed for %v: %w", e.what, failed, e.err)
		}
	}
	switch {
	case rests:
		return fmt.Errorf("claims or starts failed, and other nodes have the shards until these have succeeded for %v: %w", f.wanted, f.why)
	case f.state.now && now.Sub(f.state.since) > patience:
		return fmt.Errorf("claims or starts failed, and have not succeeded for %v since: %w", f.wanted, f.why)
	}
	return nil
}
