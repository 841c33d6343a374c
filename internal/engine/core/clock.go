package core

import (
	"math"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Clock estimates the store's time. The store's clock is the cluster's; an
// estimate of it is a lower bound, so that no run starts early by it.
//
// Each sample was read by the store before it arrived here, so at the moment of
// arrival the store's clock is at least the sample. The greatest of the last
// samples' offsets is the tightest bound, less what the clocks may have drifted
// apart since. Offsets are against this process's monotonic clock: a step of the
// local wall clock changes nothing, unless the store goes by that itself.
//
// A clock that steps ahead is not believed at once: see judge. What is deleted or
// expires by its age asks Doubt first.
type Clock struct {
	Stepped loop.Wake // poked when the store's clock was seen to step
	SetBack loop.Wake // poked when it was seen to be set back

	mu      sync.Mutex
	known   bool      // guarded by mu: the store has told its clock, or that it has none
	local   bool      // guarded by mu: it has none
	base    time.Time // with a monotonic reading; zero until the first sample
	samples [8]clockSample
	n       int
	ahead   clockSample   // guarded by mu: where the clock has stepped to since its at, and is not believed yet
	step    clockStep     // guarded by mu: the last one
	leap    clockStep     // guarded by mu: the last one ahead
	sure    time.Duration // guarded by mu: the offset that was believed before the first of the steps that are doubted
	backs   int           // guarded by mu: how often it was set back
	hour    []clockPast   // guarded by mu: what the clock was within the last hour, since the last step
	looked  time.Duration // guarded by mu: when addUp last looked, since base
	mark    clockMark     // guarded by mu
}

// clockSample is one reading of the store's clock.
type clockSample struct {
	offset time.Duration // the store's clock less the local one
	at     time.Duration // since base
}

// clockStep is by how much the store's clock has moved against the monotonic one; zero for none.
type clockStep struct {
	by time.Duration
	at time.Duration // since base: when it was seen
}

// clockPast is what the offset was, at least and at most, at a moment since base.
type clockPast struct{ least, most, at time.Duration }

// clockMark is how late it was by the store's clock when the clock was last trusted.
type clockMark struct {
	kept bool          // the store keeps one
	at   time.Time     // zero: not read yet, or none
	read time.Duration // since base: when it was first read as it is
	old  bool          // it was too old when it was first read, or went back, and is since: nobody had been there before
}

const (
	// maxDrift is how far two sound clocks drift apart in a second of each other.
	maxDrift = 500 * time.Microsecond
	// stepLeast is the least that counts as a step.
	stepLeast = time.Minute
	// stepHeld is for how long a step ahead is not believed.
	stepHeld = 15 * time.Second
	// pastEvery is how often it is noted what the clock is, to add up steps that are smaller.
	pastEvery = 5 * time.Minute
	// stepDoubted is for how long nothing is deleted after a step.
	stepDoubted = time.Hour
	// markLeast is how far ahead of the mark a clock may be in any case.
	markLeast = 24 * time.Hour
)

// Sample takes in what the store's clock was, as read by a call that was made at
// the time asked and has just returned. The zero time says that the store goes by
// this process's clock.
//
// The store read its clock after it was asked, so the offset is at most what it
// would be had it read it then. Samples that say more are from before the store's
// clock was set back, or before another server took over: they are forgotten.
func (c *Clock) Sample(store, asked time.Time) {
	arrived := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = true
	if c.base.IsZero() {
		c.base = arrived
	}
	at := arrived.Sub(c.base)
	if c.local != store.IsZero() {
		c.local, c.n, c.ahead = !c.local, 0, clockSample{}
	}
	if c.local {
		c.sampleLocal(arrived)
		return
	}
	least, most := store.Sub(c.base.Round(0))-at, store.Sub(c.base.Round(0))-asked.Sub(c.base)
	if !c.judge(least, most, at) {
		return
	}
	c.addUp(least, most, at)
	if c.best(at) > most+time.Millisecond {
		c.n = 0
	}
	c.take(least, at)
}

// sampleLocal reads the wall clock as that of a store which has no other.
func (c *Clock) sampleLocal(now time.Time) {
	at := now.Sub(c.base)
	offset := now.Round(0).Sub(c.base.Round(0)) - at
	if c.judge(offset, offset, at) {
		c.addUp(offset, offset, at)
		c.n = 0
		c.take(offset, at)
	}
}

func (c *Clock) take(offset, at time.Duration) {
	c.samples[c.n%len(c.samples)] = clockSample{offset, at}
	c.n++
}

// judge takes in that the offset is between two at a moment, and reports whether that is
// believed. One that is set back is at once. Of one that has stepped ahead by more than a minute it
// is not known whether it was wrong before or is wrong now: the estimate goes on with the monotonic
// clock, for stepHeld, so that a clock which is ahead for some seconds moves nothing; one that stays
// there is believed.
func (c *Clock) judge(least, most, at time.Duration) bool {
	if c.n == 0 {
		return true
	}
	was, last := c.best(at), c.samples[(c.n-1)%len(c.samples)]
	drift := 2 * time.Duration((at-last.at).Seconds()*float64(maxDrift))
	held := c.ahead != clockSample{}
	switch {
	case most < was-stepLeast:
		c.stepped(was, most, at)
	case least > was+stepLeast+drift:
		if !held || (least-c.ahead.offset).Abs() > stepLeast {
			c.stepped(was, least, at)
			c.ahead = clockSample{least, at}
		}
		if at-c.ahead.at < stepHeld {
			return false
		}
		c.ahead, c.n = clockSample{}, 0
	case held:
		c.stepped(c.ahead.offset, was, at)
	}
	return true
}

// addUp takes in what was believed of the offset at a moment. Where the clock has moved against what it was
// within the last hour, in steps too small to count, that is a step as well. It looks once a second at most: a
// store without a clock of its own has a sample at each Now. It is called with mu held.
func (c *Clock) addUp(least, most, at time.Duration) {
	if len(c.hour) > 0 && at-c.looked < time.Second {
		return
	}
	c.looked = at
	old := 0
	for old < len(c.hour) && at-c.hour[old].at > stepDoubted {
		old++
	}
	if old > 0 {
		c.hour = append(c.hour[:0], c.hour[old:]...)
	}
	for _, past := range c.hour {
		may := stepLeast + 2*time.Duration((at-past.at).Seconds()*float64(maxDrift))
		if least > past.most+may {
			c.stepped(past.most, least, at)
			break
		} else if most < past.least-may {
			c.stepped(past.least, most, at)
			break
		}
	}
	if n := len(c.hour); n == 0 || at-c.hour[n-1].at >= pastEvery {
		c.hour = append(c.hour, clockPast{least, most, at})
	}
}

// stepped notes a step from one offset to another. It is called with mu held.
func (c *Clock) stepped(from, to, at time.Duration) {
	by := to - from
	if !c.stepDoubted(at) {
		c.sure = from
	}
	c.step, c.hour = clockStep{by, at}, c.hour[:0]
	if by > 0 {
		c.leap = c.step
	} else {
		c.ahead = clockSample{}
		c.backs++
		c.SetBack.Poke()
	}
	c.Stepped.Poke()
}

// stepDoubted reports whether the last step is doubted at a moment. It is called with mu held.
func (c *Clock) stepDoubted(at time.Duration) bool {
	return c.step.by != 0 && at-c.step.at < stepDoubted
}

// Now returns the estimate, in UTC.
func (c *Clock) Now() time.Time {
	local := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return local.UTC()
	}
	if c.local {
		c.sampleLocal(local)
	}
	at := local.Sub(c.base)
	return c.by(c.best(at), at)
}

// by is how late it is at a moment by an offset. It is called with mu held.
func (c *Clock) by(offset, at time.Duration) time.Time { return c.base.Round(0).Add(at + offset).UTC() }

// Offset is how far the store's clock is ahead of this process's, at least; zero where that is
// not known.
func (c *Clock) Offset() time.Duration {
	now, local := c.Now(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return 0
	}
	return now.Sub(local.Round(0))
}

// best is the tightest lower bound of the offset that the samples give, the least
// duration where there are none. It is called with mu held.
func (c *Clock) best(at time.Duration) time.Duration {
	best := time.Duration(math.MinInt64)
	for _, s := range c.samples[:min(c.n, len(c.samples))] {
		age := at - s.at
		best = max(best, s.offset-time.Duration(age.Seconds()*float64(maxDrift)))
	}
	return best
}

// Doubt is Doubted in words, empty where the clock is trusted.
func (c *Clock) Doubt() (why string, since time.Time) {
	seen, since := c.Doubted()
	return seen.String(), since
}

// Doubted says why nothing is to be deleted, and nothing to expire, by the store's clock at this
// moment, and since when that is so; nothing where the clock is trusted. It is not for an
// hour after it has moved against the monotonic clock, and not while it is ahead of the mark by more
// than a day and the time for which nobody has moved that on, as far as this node has seen it.
func (c *Clock) Doubted() (seen store.Seen, since time.Time) {
	now, local := c.Now(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := local.Sub(c.base)
	ago := func(then time.Duration) time.Time { return now.Add(then - at) }
	switch {
	case c.stepDoubted(at):
		seen := store.Seen{What: store.SeenClockAhead, For: c.step.by.Abs().Round(time.Second), At: c.by(min(c.best(at), c.sure), at)}
		if c.markDoubted(now, at) {
			seen.At = Sooner(seen.At, c.byMark(at))
		}
		if c.step.by < 0 {
			seen.What = store.SeenClockBack
			if now.Sub(seen.At) < stepLeast { // and is not ahead by a step before
				seen.At = time.Time{}
			}
		}
		return seen, ago(c.step.at)
	case c.mark.kept && c.mark.read == 0:
		return store.Seen{What: store.SeenClockUnread}, ago(0)
	case c.markDoubted(now, at):
		return store.Seen{What: store.SeenClockJumped, For: now.Sub(c.mark.at).Round(time.Second), At: c.byMark(at)}, ago(0)
	}
	return store.Seen{}, time.Time{}
}

// Trusted is how late it is by the store's clock, or would be had it gone on as before the steps that are
// doubted, where that is earlier.
func (c *Clock) Trusted() time.Time {
	seen, _ := c.Doubted()
	if at, ahead := store.ClockTrusted(seen); ahead {
		return at
	}
	return c.Now()
}

// markDoubted reports whether the clock is too far ahead of the mark. A node that has found an old mark
// believes the clock once it has seen it go on steadily for an hour: nobody was there for that long. One
// that has seen the mark move on knows better. It is called with mu held.
func (c *Clock) markDoubted(now time.Time, at time.Duration) bool {
	return c.aheadOfMark(now, at) && !(c.mark.old && at >= stepDoubted)
}

// aheadOfMark reports whether the clock is ahead of the mark by more than what has passed. It is called
// with mu held.
func (c *Clock) aheadOfMark(now time.Time, at time.Duration) bool {
	return !c.mark.at.IsZero() && now.Sub(c.mark.at) > markLeast+at-c.mark.read
}

// byMark is how late it is at a moment where nobody has moved the mark since this node read it. It is called
// with mu held.
func (c *Clock) byMark(at time.Duration) time.Time { return c.mark.at.Add(at - c.mark.read).UTC() }

// KnowMark takes in what the store has as the mark, the zero time for none. One that goes back is of another
// past, as in a database that was restored from a copy: nobody was there since.
func (c *Clock) KnowMark(mark time.Time) {
	now, local := c.Now(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := max(local.Sub(c.base), 1)
	if first := c.mark.read == 0 || mark.Before(c.mark.at); first || !c.mark.at.Equal(mark) {
		c.mark.at, c.mark.read = mark, at
		c.mark.old = (first || c.mark.old) && c.aheadOfMark(now, at)
	}
}

// KeepsMark notes that the store keeps a mark: until it is known, nothing is deleted.
func (c *Clock) KeepsMark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark.kept = true
}

// Age is how long ago a time of the store's was, for what is given up by its age: zero while the
// clock is doubted.
func (c *Clock) Age(t time.Time) time.Duration {
	if why, _ := c.Doubt(); why != "" {
		return 0
	}
	return c.Now().Sub(t)
}

// HasStepped reports whether the store's clock was seen to step within the last hour, and whether a
// step ahead is not believed yet.
func (c *Clock) HasStepped() (lately, held bool) {
	local := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepDoubted(local.Sub(c.base)), c.ahead != clockSample{}
}

// Leapt is how far the store's clock has stepped ahead within so long: by so much what somebody
// has stored before looks older than it is.
func (c *Clock) Leapt(within time.Duration) time.Duration {
	local := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leap.by != 0 && local.Sub(c.base)-c.leap.at < within {
		return c.leap.by
	}
	return 0
}

// Backs is how often the store's clock was seen to be set back.
func (c *Clock) Backs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backs
}

// Sooner is the sooner of two times.
func Sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier is the earlier of two times, of which the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
