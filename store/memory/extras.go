package memory

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// extras are what few runs have.
type extras struct {
	parent            int64
	depth             int
	attempt           int
	business          time.Time
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
	out.Addresses, out.Trace, out.KillReason = copied(x.addresses), x.trace, x.killReason
	out.Progress, out.ProgressText = x.progress, x.progressText
	out.First, out.Last, out.Count, out.Reason = x.first, x.last, x.count, x.reason
	out.Sharding, out.Reruns, out.Snoozes = x.sharding, x.reruns, x.snoozes
}

// keepExtras keeps what a snapshot has of them, if it has something.
func (r *run) keepExtras(from *store.Run) {
	if from.ParentID == 0 && from.Depth == 0 && from.Attempt == 0 && from.Business.IsZero() && len(from.Addresses) == 0 &&
		from.Trace == "" && from.KillReason == "" && from.Progress == 0 && from.ProgressText == "" &&
		from.First.IsZero() && from.Last.IsZero() && from.Count == 0 && from.Reason == "" &&
		from.Sharding == (store.Sharding{}) && from.Reruns == 0 && from.Snoozes == 0 {
		return
	}
	x := r.own()
	x.parent, x.depth, x.attempt, x.business = from.ParentID, from.Depth, from.Attempt, from.Business
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
		x.progress, x.progressText = percent, text
	}
}
