package console

// What is shown while the store does not answer: the frame, for who had a session here a moment ago,
// and what this process knows by itself.

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// awayView is what this process knows without the store.
type awayView struct {
	Answered  time.Time // when the store has answered the console last; zero: not yet
	Node      string
	Lost      bool // the scheduler says that the store does not answer, and not that it answers with an error
	Ready     bool
	NotReady  []unready // why
	Running   []appRuns
	Held, Due int
	Shards    int
	LeaseLeft time.Duration
	Again     bool // the page asks again by itself
}

// appRuns is how many runs of an app this process has.
type appRuns struct {
	App string
	N   int
}

// away is what is said beside a problem of the store; nil for other problems, and for nobody.
func (q *request) away(p *web.Problem) *awayView {
	if q.user == nil || !slices.Contains([]string{"problem.store", "problem.slow"}, p.Key) {
		return nil
	}
	v := &awayView{Again: q.R.Method == "GET"}
	if at := q.answered.Load(); at != 0 {
		v.Answered = time.UnixMilli(at)
	}
	if q.Scheduler == nil {
		return v
	}
	s := q.Scheduler.Stats()
	v.Node, v.Held, v.Due, v.Shards, v.LeaseLeft = s.Node, s.Held, s.Due, s.Shards, s.LeaseLeft.Truncate(time.Second)
	var not *xxljob.NotReadyError
	err := q.Scheduler.Ready()
	v.Ready, v.NotReady = err == nil, q.notReady()
	q.told.unready = true
	v.Lost = errors.As(err, &not) && slices.Contains(not.Reasons, "store-away")
	for _, app := range slices.Sorted(maps.Keys(s.Running)) {
		if n := s.Running[app]; n > 0 && allowed(q.user, see, app) {
			v.Running = append(v.Running, appRuns{app, n})
		}
	}
	return v
}

// Lease is for how long the node may still act on its shards, in words.
func (v *awayView) Lease(p *page) string {
	if v.LeaseLeft <= 0 {
		return p.T("away.lease.over")
	}
	return p.Span(v.LeaseLeft)
}

// Runs are those under way here, by app.
func (v *awayView) Runs() (list []string) {
	for _, x := range v.Running {
		list = append(list, x.App+": "+strconv.Itoa(x.N))
	}
	return list
}
