package console

// What the chart of the overview spans, what changed meanwhile, and what is due in the next half hour.

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// span is a range of the chart, and how much of it one bar is.
type span struct {
	Key       string
	of, every time.Duration
}

// spans are the ranges there are.
var spans = []span{{"1h", time.Hour, store.Quarter}, {"24h", chartOf, store.Quarter}, {"7d", 7 * 24 * time.Hour, time.Hour}, {"30d", 30 * 24 * time.Hour, 6 * time.Hour}}

// spanAsked is the range that the address names: 24 hours where it names none.
func (q *request) spanAsked() (span, error) {
	key := q.Query("range")
	if key == "" {
		key = spans[1].Key
	}
	for _, s := range spans {
		if s.Key == key {
			return s, nil
		}
	}
	return span{}, &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.range"}
}

// begin is when the range begins that ends with the present quarter of an hour.
func (s *span) begin(now time.Time) time.Time {
	return store.QuarterOf(now).Add(store.Quarter - s.of).UTC()
}

// tick marks what happened while a bar lasted: changes of jobs, or nodes that joined.
type tick struct {
	X, N         int
	Nodes        bool
	Since, Until string
}

const (
	changesTicked = 500
	changesLooked = 5000
)

// changedIn are the changes of definitions of jobs in the range, as far as the newest entries say.
func (q *request) changedIn(apps []string, since time.Time) ([]xxljob.Change, error) {
	if q.record == nil {
		return nil, nil
	}
	found, err := q.record.SearchChanges(q.ctx, xxljob.ChangeSearch{Object: store.ObjectJob, Apps: apps, Since: since, Limit: changesTicked, Examine: changesLooked, Brief: true})
	return slices.DeleteFunc(found.Changes, func(c xxljob.Change) bool { return !defines(c.Verb) && c.Verb != "remove" }), err
}

// defines reports whether what was done has made a definition.
func defines(verb string) bool { return verb == "add" || verb == "update" || verb == "ensure" }

// ticks are the marks of a range.
func (s *span) ticks(begin time.Time, changes []xxljob.Change, nodes []store.Node) (list []tick) {
	at := map[[2]int]int{}
	add := func(t time.Time, nodes int) {
		i := int(t.Sub(begin) / s.every)
		if t.Before(begin) || i >= int(s.of/s.every) {
			return
		}
		k, there := at[[2]int{i, nodes}]
		if !there {
			k = len(list)
			at[[2]int{i, nodes}] = k
			from := begin.Add(time.Duration(i) * s.every)
			list = append(list, tick{X: i*barWidth + barWidth/2 + 2*nodes, Nodes: nodes > 0, Since: from.Format(time.RFC3339), Until: from.Add(s.every).Format(time.RFC3339)})
		}
		list[k].N++
	}
	for i := range changes {
		add(changes[i].At, 0)
	}
	for i := range nodes {
		add(nodes[i].Joined, 1)
	}
	return list
}

// soon is what is due in the next half hour, a minute each. Of many jobs it is the first instants.
type soon struct {
	Bars   []soonBar
	N      int
	More   bool      // than are counted
	Full   time.Time // the second with the most of them
	FullN  int
	Width  int
	Height int
}

type soonBar struct {
	X, Y, H, N int
	At         time.Time
	Full       bool
}

const (
	soonMinutes  = 30
	soonJobs     = 500
	soonInstants = 5000
	soonHeight   = 40
)

// soonOf counts the instants of jobs that are due next, the first first.
func soonOf(jobs []xxljob.Job, now time.Time) *soon {
	begin := now.UTC().Truncate(time.Minute)
	end := begin.Add(soonMinutes * time.Minute)
	s := &soon{Width: soonMinutes * barWidth, Height: soonHeight, More: len(jobs) == soonJobs && jobs[len(jobs)-1].Next.Before(end)}
	var minutes [soonMinutes]int
	seconds := map[time.Time]int{}
	for i := range jobs {
		j := &jobs[i]
		for at, left := j.Next, 0; !at.IsZero() && at.Before(end); {
			if s.N == soonInstants {
				s.More = true
				break
			}
			if s.N++; !at.Before(begin) {
				minutes[int(at.Sub(begin)/time.Minute)]++
			} else {
				minutes[0]++
			}
			second := at.UTC().Truncate(time.Second)
			if seconds[second]++; seconds[second] > s.FullN || seconds[second] == s.FullN && second.Before(s.Full) {
				s.Full, s.FullN = second, seconds[second]
			}
			if left++; j.Schedule.Type == xxljob.ScheduleFixDelay || j.MaxRuns > 0 && j.Runs+left >= j.MaxRuns {
				break
			}
			next, err := j.Schedule.Upcoming(at, 1)
			if err != nil || len(next) == 0 || !j.NotAfter.IsZero() && next[0].After(j.NotAfter) {
				break
			}
			at = next[0]
		}
	}
	most := max(slices.Max(minutes[:]), 1)
	for i, n := range minutes {
		h := n * (soonHeight - 2) / most
		if n > 0 {
			h = max(h, 1)
		}
		at := begin.Add(time.Duration(i) * time.Minute)
		s.Bars = append(s.Bars, soonBar{X: i * barWidth, Y: soonHeight - h, H: h, N: n, At: at, Full: s.FullN > 1 && at.Equal(s.Full.Truncate(time.Minute))})
	}
	return s
}

// chartIn draws the range that the address names.
func (q *request) chartIn(s span, r *overviewRead) *chart {
	c := q.chartOf(r.reports, s, r.world.Now)
	if c == nil {
		return nil
	}
	begin := s.begin(r.world.Now)
	c.Ticks, c.Changes, c.Begin = s.ticks(begin, r.changes, r.world.Nodes), len(r.changes), begin.Format(time.RFC3339)
	for _, n := range r.world.Nodes {
		if !n.Joined.Before(begin) {
			c.Joined++
		}
	}
	return c
}

// SpansOf are the keys of the ranges.
func (c *chart) SpansOf() (keys []string) {
	for _, s := range spans {
		keys = append(keys, s.Key)
	}
	return keys
}

// hours are times below the chart.
func (q *request) hours(s span, begin time.Time) (list []string) {
	layout := "15:04"
	if s.of > chartOf {
		layout = "01-02 15:04"
	}
	for i := range 5 {
		list = append(list, begin.Add(time.Duration(i)*s.of/4).In(q.look.Zone).Format(layout))
	}
	return list
}

// Count is how many of the instants are counted, with a sign where there are more.
func (s *soon) Count() string {
	n := strconv.Itoa(s.N)
	if s.More {
		n += "+"
	}
	return n
}
