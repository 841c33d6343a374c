package bench

import "time"

// second is how often each job is due.
const second = time.Second

// calendar is which instants the jobs of a paced load have, all to the millisecond. Job i has
// its first one at begin, later by i/jobs of a second where they are spread, and then one a
// second up to and including last.
type calendar struct {
	jobs   int
	spread bool
	begin  time.Time // a whole second
	// from and to bound what is measured, to excluded. They are between two seconds, so that a
	// herd is measured from its first to its last.
	from, to time.Time
	last     time.Time
}

// tail is how long the load goes on after it was measured, so that jobs which come to their
// last instant are not measured.
const tail = 2 * time.Second

// newCalendar begins no earlier than the time.
func newCalendar(jobs int, spread bool, notBefore time.Time, warmup, during time.Duration) calendar {
	begin := notBefore.UTC().Truncate(second).Add(second)
	c := calendar{jobs: jobs, spread: spread, begin: begin, from: begin.Add(warmup - second/2)}
	c.to = c.from.Add(during)
	c.last = c.to.Add(tail)
	return c
}

// first is the first instant of a job.
func (c calendar) first(i int) time.Time {
	if !c.spread {
		return c.begin
	}
	return c.begin.Add((time.Duration(i) * second / time.Duration(c.jobs)).Truncate(time.Millisecond))
}

// instants is how many a job has from its first one up to a time, which is included.
func (c calendar) instants(i int, upTo time.Time) int {
	first := c.first(i)
	if upTo.Before(first) {
		return 0
	}
	return int(upTo.Sub(first)/second) + 1
}

// offered is how many instants there are while it is measured.
func (c calendar) offered() int {
	n := 0
	for i := range c.jobs {
		n += c.instants(i, c.to.Add(-1)) - c.instants(i, c.from.Add(-1))
	}
	return n
}

// units are what each has to run once: all instants of all jobs, numbered.
type units interface {
	// count is how many there are.
	count() int
	// of is the number of what a run or a call stands for; false where that is none of them.
	of(job, run int64, at time.Time) (int, bool)
}

// instantUnits are those of a calendar.
type instantUnits struct {
	calendar
	index map[int64]int // of jobs, by id
	start []int         // number of the first instant of each job, and the count behind
}

func newInstantUnits(c calendar, ids []int64) *instantUnits {
	u := &instantUnits{calendar: c, index: make(map[int64]int, len(ids)), start: make([]int, len(ids)+1)}
	for i, id := range ids {
		u.index[id] = i
		u.start[i+1] = u.start[i] + c.instants(i, c.last)
	}
	return u
}

func (u *instantUnits) count() int { return u.start[len(u.start)-1] }

func (u *instantUnits) of(job, _ int64, at time.Time) (int, bool) {
	i, ok := u.index[job]
	if !ok {
		return 0, false
	}
	since := at.Sub(u.first(i))
	n := u.start[i] + int(since/second)
	return n, since >= 0 && since%second == 0 && n < u.start[i+1]
}

// runUnits are runs that were planned one by one.
type runUnits struct{ index map[int64]int }

func newRunUnits(ids []int64) runUnits {
	u := runUnits{make(map[int64]int, len(ids))}
	for _, id := range ids {
		u.index[id] = len(u.index)
	}
	return u
}

func (u runUnits) count() int { return len(u.index) }

func (u runUnits) of(_, run int64, _ time.Time) (int, bool) {
	n, ok := u.index[run]
	return n, ok
}
