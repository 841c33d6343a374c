package store

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"time"
)

// Reports count how runs have ended, by app and by the quarter of an hour of the instants that
// they stand for.

const (
	// Quarter is the finest length of a report. Each zone of the world begins its days on a
	// quarter of an hour of UTC.
	Quarter = 15 * time.Minute
	// ReportDay is the length of a report of long ago: a day of UTC.
	ReportDay = 24 * time.Hour
	// QuartersKept is for how long reports are kept by quarters of an hour. Older ones are
	// added up to days.
	QuartersKept = 35 * ReportDay
	// States is how many numbers of states there are.
	States = 13
)

// Report counts how runs of an app have ended.
type Report struct {
	// App is the runs' app. It is empty where the reports of several apps are added up.
	App string
	// From is when the report begins, Length how much it spans: runs whose instants lie in it
	// are counted, see Run.Instant.
	From   time.Time
	Length time.Duration
	// Ended has the number of runs that have ended in each state, by the number of the state:
	// Ended[xxljob.StateFailed]. A record of skipped instants counts once.
	Ended [States]int64
	// Lateness is how late runs were started, Duration how long they took from their start to
	// their end: of those that a handler had, or may have had. They are in xxljob.StateSucceeded,
	// StateFailed, StateTimedOut, StateKilled, StateLost or StateSnoozed.
	Lateness, Duration Histogram
}

// Add adds the counts of another report.
func (r *Report) Add(o *Report) {
	for i, n := range o.Ended {
		r.Ended[i] += n
	}
	r.Lateness.Add(&o.Lateness)
	r.Duration.Add(&o.Duration)
}

// Buckets is how many buckets a Histogram has.
const Buckets = 19

// Bounds returns the upper bounds, inclusive, of all buckets of a Histogram but the last, which
// has none: 1, 2, 5 milliseconds and so on up to 5 minutes.
func Bounds() [Buckets - 1]time.Duration {
	const ms = time.Millisecond
	return [...]time.Duration{
		1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		1000 * ms, 2000 * ms, 5000 * ms, 10_000 * ms, 20_000 * ms, 50_000 * ms, 100_000 * ms, 200_000 * ms, 300_000 * ms,
	}
}

// Histogram counts times of whole milliseconds. The zero value counts none.
type Histogram struct {
	// Counts is how many times were at most the bound of each bucket, see Bounds, and above
	// that of the one before.
	Counts [Buckets]int64
	// Sum is all of them together.
	Sum time.Duration
}

// Observe counts a time, cut to milliseconds. A negative one counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0).Truncate(time.Millisecond)
	bounds := Bounds()
	h.Counts[sort.Search(len(bounds), func(i int) bool { return d <= bounds[i] })]++
	h.Sum += d
}

// Add adds the counts of another histogram.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// Count returns how many times were counted.
func (h *Histogram) Count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Mean returns the mean of the times, zero where there is none.
func (h *Histogram) Mean() time.Duration {
	if n := h.Count(); n > 0 {
		return h.Sum / time.Duration(n)
	}
	return 0
}

// Quantile returns a time that a share p of the times, from 0 to 1, does not exceed, as far as
// the buckets tell: the bound of the bucket that it falls into. It is zero where no time was
// counted. The last bucket has no bound: more says that the time is above the bound returned.
func (h *Histogram) Quantile(p float64) (bound time.Duration, more bool) {
	n := h.Count()
	if n == 0 {
		return 0, false
	}
	bounds := Bounds()
	rank := min(max(int64(math.Ceil(p*float64(n)-1e-9)), 1), n) // 0.07 * 100 is a little more than 7
	for i, c := range h.Counts {
		if rank -= c; rank <= 0 {
			return bounds[min(i, len(bounds)-1)], i == len(bounds)
		}
	}
	return bounds[len(bounds)-1], true
}

// Tally, for authors of stores, counts ends of runs, of one transaction for instance. The zero
// value has counted none.
type Tally struct {
	reports map[tallied]*Report
}

// tallied is what the ends of one report have in common.
type tallied struct {
	quarter int64
	app     string
}

// Count returns the report that an end of an app's run at an instant counts in.
func (t *Tally) Count(app string, instant time.Time) *Report {
	from := QuarterOf(instant)
	key := tallied{from.UnixMilli(), app}
	r := t.reports[key]
	if r == nil {
		if t.reports == nil {
			t.reports = map[tallied]*Report{}
		}
		r = &Report{App: app, From: from, Length: Quarter}
		t.reports[key] = r
	}
	return r
}

// Reports returns what was counted, in order of From and App.
func (t *Tally) Reports() []*Report {
	return slices.SortedFunc(maps.Values(t.reports), func(a, b *Report) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.App, b.App))
	})
}

// QuarterOf returns the beginning of the quarter of an hour of UTC that a time is in.
func QuarterOf(t time.Time) time.Time { return beginning(t, Quarter) }

// DayOf returns the beginning of the day of UTC that a time is in.
func DayOf(t time.Time) time.Time { return beginning(t, ReportDay) }

// beginning rounds down, before 1970 too.
func beginning(t time.Time, length time.Duration) time.Time {
	ms, unit := t.UnixMilli(), length.Milliseconds()
	behind := ms % unit
	if behind < 0 {
		behind += unit
	}
	return time.UnixMilli(ms - behind).UTC()
}
