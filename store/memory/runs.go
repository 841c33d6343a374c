package memory

// Runs: what is kept of one, in as few bytes as may be, and how it is found by its id.

import (
	"slices"
	"sort"
	"time"

	"github.com/xxljob/xxljob/store"
)

// run is a run with its places in the sets it is in. All of it is guarded by
// Store.mu; a run that was evicted is used again.
//
// Hundreds of thousands that have ended are kept, and each time the garbage is collected their
// pointers are followed. So a run has as few as may be, and those in front; what runs of a job
// have in common is in terms, what few have in extras; times are in milliseconds. It is made a
// whole store.Run when somebody reads it.
type run struct {
	job       *job
	terms     *terms  // never nil
	extras    *extras // nil for none; see extra
	owner     *peer   // set while started or dispatched by a node
	addressee *peer   // set while started or dispatched at an attached address
	first     *run    // of its trigger, itself perhaps; kept for as long as one of them has not ended
	links     [listKinds]link

	Type                  store.TriggerType
	TriggerMsg, HandleMsg string

	ID, TriggerID, PlanEpoch, Token           int64
	scheduled, created, started, taken, ended int64

	unended   int32 // runs of the trigger, where it is the first
	parts     int32 // of the trigger, where it is the first
	succeeded int32 // of these
	count     int32 // of the job, when the run was planned
	place     int32 // in job.planned or job.ahead while planned, in shard.started while started

	State                                          store.State
	AlarmStatus                                    int8
	Born, ParamSet, RetriesSet, LateNoted, NoRetry bool

	followed bool // another run follows it
	late     bool // an alarm has said so
	foreign  bool // planned, and neither planned nor loaded under the shard's epoch
	ahead    bool // planned, and kept apart until extras.move: see AddAhead
	kept     bool // counted among those that have ended: see keepEnded
}

func (r *run) slot() *int32 { return &r.place }

// snapshot is the run as callers get it.
func (r *run) snapshot() (out store.Run) {
	r.put(&out)
	return out
}

// put makes a run that is empty the snapshot.
func (r *run) put(out *store.Run) {
	out.ID, out.JobID, out.Shard, out.TriggerID = r.ID, r.job.id, r.job.shard.id, r.TriggerID
	out.Type, out.State, out.PlanEpoch, out.Token, out.AlarmStatus = r.Type, r.State, r.PlanEpoch, r.Token, int(r.AlarmStatus)
	out.Born, out.ParamSet, out.RetriesSet, out.LateNoted, out.NoRetry = r.Born, r.ParamSet, r.RetriesSet, r.LateNoted, r.NoRetry
	out.TriggerMsg, out.HandleMsg = r.TriggerMsg, r.HandleMsg
	out.Scheduled, out.Created = fromMilli(r.scheduled), fromMilli(r.created)
	out.Started, out.Taken, out.Ended = fromMilli(r.started), fromMilli(r.taken), fromMilli(r.ended)
	r.terms.put(out)
	if r.extras != nil {
		r.extras.put(out)
	}
}

// keep makes the run that of a snapshot, but for what insertRun gives it.
func (r *run) keep(from *store.Run) {
	r.Type, r.State, r.PlanEpoch, r.Token, r.AlarmStatus = from.Type, from.State, from.PlanEpoch, from.Token, int8(from.AlarmStatus)
	r.Born, r.ParamSet, r.RetriesSet, r.LateNoted, r.NoRetry = from.Born, from.ParamSet, from.RetriesSet, from.LateNoted, from.NoRetry
	r.TriggerID, r.TriggerMsg, r.HandleMsg = from.TriggerID, from.TriggerMsg, from.HandleMsg
	r.scheduled, r.created = toMilli(from.Scheduled), toMilli(from.Created)
	r.started, r.taken, r.ended = toMilli(from.Started), toMilli(from.Taken), toMilli(from.Ended)
	r.agree(termsOf(from, r.job.app))
	r.keepExtras(from)
}

// read is the run with the names that its job has now, as those get it who read runs.
func (r *run) read() store.Run {
	out := r.snapshot()
	if j := r.job; !j.removed {
		out.JobName, out.JobKey, out.Secret = j.def.name, j.def.key, j.def.secret()
	}
	return out
}

// due is when it is due, or its first run was, in milliseconds; see store.Run.Due.
func (r *run) due() int64 {
	if r.Type == store.TriggerRetry {
		if last := r.extra().last; !last.IsZero() {
			return toMilli(last)
		}
	}
	return r.scheduled
}

// createdAt is when the run was inserted.
func (r *run) createdAt() time.Time { return fromMilli(r.created) }

// say adds a line to the TriggerMsg.
func (r *run) say(line string) {
	line = store.PlainText(line)
	switch {
	case line == "":
	case r.TriggerMsg == "":
		r.TriggerMsg = line
	default:
		r.TriggerMsg += "\n" + line
	}
}

// terms are what a run was started with, as it mostly has in common with other runs of its job.
// They are never changed, only replaced, but for how many runs that have ended have them.
type terms struct {
	app                    string // when the run was inserted
	handler, block, param  string
	address, owner, bootID string
	jobVersion             int64
	retries                int32
	kept                   int32 // guarded by Store.mu
}

func termsOf(r *store.Run, app string) terms {
	return terms{
		app: app, handler: r.Handler, block: r.Block, param: r.Param, address: r.Address, owner: r.Owner, bootID: r.BootID,
		jobVersion: r.JobVersion, retries: int32(r.Retries),
	}
}

func (t *terms) put(out *store.Run) {
	out.App, out.Handler, out.Block, out.Param = t.app, t.handler, t.block, t.param
	out.Address, out.Owner, out.BootID = t.address, t.owner, t.bootID
	out.JobVersion, out.Retries = t.jobVersion, int(t.retries)
}

// agree gives the run its terms: those that another run of the job had last, where they are the
// same.
func (r *run) agree(t terms) {
	last := &r.job.started
	if t.owner == "" {
		last = &r.job.plain
	}
	if t.kept = 0; *last != nil {
		t.kept = (*last).kept
	}
	if *last == nil || **last != t {
		own := t // so that t itself need not be on the heap
		own.kept = 0
		*last = &own
	}
	r.terms = *last
}

// agreePlain gives a run of which there is nothing to say but that it is planned its terms: those
// that all such runs of the app have.
func (s *Store) agreePlain(r *run) {
	j, plain := r.job, terms{app: r.job.app, retries: retriesOfJob}
	if j.plain != nil {
		plain.kept = j.plain.kept
	}
	if j.plain == nil || *j.plain != plain {
		plain.kept = 0
		j.plain = s.plainOf(plain)
	}
	r.terms = j.plain
}

func (s *Store) plainOf(t terms) *terms {
	a := s.apps[t.app]
	if a == nil || a.plain == nil {
		own := t
		if a == nil {
			return &own
		}
		a.plain = &own
	}
	return a.plain
}

// extras are what few runs have.
type extras struct {
	parent            int64
	depth             int
	attempt           int
	business          time.Time
	standsFor         time.Time
	addresses         []string
	trace, killReason string
	progress          int
	progressText      string
	first, last       time.Time
	count             int
	reason            string
	sharding          store.Sharding
	reruns, snoozes   int

	key   string // of the trigger, if it had one
	move  int64  // when it stops to be kept apart, or stopped; zero for what never was
	pages logPages
}

// extra is what the run has of them, to be read.
func (r *run) extra() *extras {
	if r.extras == nil {
		return &extras{}
	}
	return r.extras
}

// own is what the run has of them, to be changed.
func (r *run) own() *extras {
	if r.extras == nil {
		r.extras = new(extras)
	}
	return r.extras
}

func (x *extras) put(out *store.Run) {
	out.ParentID, out.Depth, out.Attempt, out.Business = x.parent, x.depth, x.attempt, x.business
	out.StandsFor = x.standsFor
	out.Addresses, out.Trace, out.KillReason = copied(x.addresses), x.trace, x.killReason
	out.Progress, out.ProgressText = x.progress, x.progressText
	out.First, out.Last, out.Count, out.Reason = x.first, x.last, x.count, x.reason
	out.Sharding, out.Reruns, out.Snoozes = x.sharding, x.reruns, x.snoozes
}

// keepExtras keeps what a snapshot has of them, if it has something.
func (r *run) keepExtras(from *store.Run) {
	if from.ParentID == 0 && from.Depth == 0 && from.Attempt == 0 && from.Business.IsZero() && from.StandsFor.IsZero() && len(from.Addresses) == 0 &&
		from.Trace == "" && from.KillReason == "" && from.Progress == 0 && from.ProgressText == "" &&
		from.First.IsZero() && from.Last.IsZero() && from.Count == 0 && from.Reason == "" &&
		from.Sharding == (store.Sharding{}) && from.Reruns == 0 && from.Snoozes == 0 {
		return
	}
	x := r.own()
	x.parent, x.depth, x.attempt, x.business = from.ParentID, from.Depth, from.Attempt, from.Business
	x.standsFor = from.StandsFor
	x.addresses, x.trace, x.killReason = copied(from.Addresses), from.Trace, from.KillReason
	x.progress, x.progressText = from.Progress, from.ProgressText
	x.first, x.last, x.count, x.reason = from.First, from.Last, from.Count, from.Reason
	x.sharding, x.reruns, x.snoozes = from.Sharding, from.Reruns, from.Snoozes
}

// setReason says why the run was skipped or cancelled.
func (r *run) setReason(reason string) {
	if reason != "" || r.extras != nil {
		r.own().reason = reason
	}
}

// setProgress says how far it is.
func (r *run) setProgress(percent int, text string) {
	if percent != 0 || text != "" || r.extras != nil {
		x := r.own()
		x.progress, x.progressText = percent, store.PlainText(text)
	}
}

func copied[T any](s []T) []T { return append([]T(nil), s...) }

// plain is a copy of texts as the store keeps them.
func plain(texts []string) []string {
	out := copied(texts)
	for i := range out {
		out[i] = store.PlainText(out[i])
	}
	return out
}

// runs finds runs by id. Ids are counted, from where ids.go says, so the runs lie in
// segments of consecutive ids; a segment whose runs are all evicted goes.
type runs struct {
	last     int64
	segments []*segment // in order; the tail mostly without gaps
	empty    int        // segments without a run
	free     []*run     // evicted runs, to be used again
}

const (
	// segmentSize is small, so that one run that is kept among many that are
	// not keeps little else.
	segmentSize = 64
	// maxFree bounds the memory that waits to be used again.
	maxFree = 1024
)

type segment struct {
	no   int64 // of ids from no*segmentSize on
	n    int
	runs [segmentSize]*run
}

// add returns a new run with the next id.
func (x *runs) add() *run {
	x.last++
	no := x.last / segmentSize
	if len(x.segments) == 0 || x.segments[len(x.segments)-1].no != no {
		x.segments = append(x.segments, &segment{no: no})
		x.empty++
	}
	r := x.fresh()
	r.ID = x.last
	seg := x.segments[len(x.segments)-1]
	if seg.n == 0 {
		x.empty--
	}
	seg.n++
	seg.runs[x.last%segmentSize] = r
	return r
}

// clear makes it a run of which nothing is known.
func (r *run) clear() { *r = run{started: noTime, taken: noTime, ended: noTime} }

func (x *runs) fresh() *run {
	if last := len(x.free) - 1; last >= 0 {
		r := x.free[last]
		x.free[last] = nil
		x.free = x.free[:last]
		return r
	}
	r := new(run)
	r.clear()
	return r
}

// find returns the run, or nil.
func (x *runs) find(id int64) *run {
	i, ok := x.segment(id / segmentSize)
	if !ok || id <= 0 {
		return nil
	}
	return x.segments[i].runs[id%segmentSize]
}

// segment returns where the segment is or would be.
func (x *runs) segment(no int64) (int, bool) {
	n := len(x.segments)
	if n == 0 {
		return 0, false
	}
	if behind := x.segments[n-1].no - no; behind >= 0 && behind < int64(n) {
		if i := n - 1 - int(behind); x.segments[i].no == no {
			return i, true
		}
	}
	i := sort.Search(n, func(i int) bool { return x.segments[i].no >= no })
	return i, i < n && x.segments[i].no == no
}

// before returns the run with the greatest id below the given one, or nil.
func (x *runs) before(id int64) *run {
	i, ok := x.segment((id - 1) / segmentSize)
	from := int((id - 1) % segmentSize)
	if !ok {
		i, from = i-1, segmentSize-1
	}
	for ; i >= 0; i, from = i-1, segmentSize-1 {
		seg := x.segments[i]
		for k := from; k >= 0 && seg.n > 0; k-- {
			if seg.runs[k] != nil {
				return seg.runs[k]
			}
		}
	}
	return nil
}

// drop forgets a run that is in no set any more.
func (x *runs) drop(r *run) {
	i, _ := x.segment(r.ID / segmentSize)
	seg := x.segments[i]
	seg.runs[r.ID%segmentSize] = nil
	if seg.n--; seg.n == 0 {
		x.empty++
	}
	r.clear()
	if len(x.free) < maxFree {
		x.free = append(x.free, r)
	}
	if x.empty > 16 && x.empty > len(x.segments)/2 {
		x.segments = slices.DeleteFunc(x.segments, func(s *segment) bool { return s.n == 0 })
		x.empty = 0
	}
}
