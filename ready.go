package xxljob

import (
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// What Scheduler.Ready may be asked to look at, and what it answers.

// ReadyConfig says when Scheduler.Ready returns an error although the scheduler is started. The
// zero value is complete.
//
// A readiness probe decides whether a process is sent requests. Of a store that is away all
// replicas hear at once: where their own requests can be answered without it, StoreAway should
// be longer than such an absence lasts, a fail-over of the database for instance, lest a
// balancer takes out all of them together. What one replica has of its own, such as a backlog or
// a clock that is wrong, is what the other fields are for. None of them changes what the
// scheduler does: runs are safe, and shards move, by Config.Cluster alone. A liveness probe is
// not to call Ready: a restart mends none of this.
type ReadyConfig struct {
	// StoreAway is for how long the store may have acknowledged no beat of this node. Zero
	// means as long as the lease is trusted, which is four fifths of Cluster.LeaseTTL. At
	// least that, and at most 24 h. It is also for how long claims or starts may
	// fail while this node has its shards, where zero means a fifth of a LeaseTTL. A node that
	// has never beaten, or that others have the shards of since it alone fails, is not ready
	// at once.
	StoreAway time.Duration
	// MaxWaiting is how many due runs this node may hold that have not begun to start. Those
	// that wait for another run of theirs, by SERIAL_EXECUTION, a maximum or an order, do not
	// count: they wait on a healthy node too. At most 1,000,000,000; zero means any number.
	MaxWaiting int
	// MaxLate is for how long the oldest of these runs may have been due. 1 s to 24 h; zero
	// means any time.
	MaxLate time.Duration
	// MaxClockOffset is how far the store's clock may be from this process's, in either
	// direction, as Stats.ClockOffset has it: that is less than it is by what a call of the
	// store takes. 10 ms to 24 h; zero means any distance.
	MaxClockOffset time.Duration
	// Troubles are causes of Scheduler.Troubles which make this node not ready, each under its
	// own name as the reason. No cause does by itself: they are what another process would do no
	// better, so that a balancer would take out all of them.
	Troubles []TroubleCause
}

// NotReadyError is what Scheduler.Ready returns, under errors.As. It is ErrNotReady, under
// errors.Is, and each of Errs.
type NotReadyError struct {
	// Reasons are what is wrong, in the order of Errs: "shards" where the store has another number
	// of them (ErrShards), "stopped" (ErrStopped), "not-started", "superseded" by a later node
	// with the same Config.Node; "store-away" where the store has not acknowledged a beat in time,
	// with why the last one failed, or at once where it was closed (ErrStoreClosed), "failing" where claims or starts fail, "results" where results
	// could not be stored for a LeaseTTL and for StoreAway, "places" where abandoned handlers hold
	// half of an app's places here or more and due runs have waited for one for a LeaseTTL; and by
	// the thresholds of ReadyConfig "waiting", "late" and "clock", and those of its Troubles that
	// there are. The first four come alone.
	Reasons []string
	// Errs say it in words, with the bounds that are exceeded.
	Errs []error
}

func (e *NotReadyError) Error() string {
	texts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		texts[i] = strings.ReplaceAll(strings.TrimPrefix(err.Error(), "xxljob: "), ": xxljob: ", ": ")
	}
	return errs.ErrNotReady.Error() + ": " + strings.Join(texts, "; ")
}

// Unwrap returns ErrNotReady and Errs.
func (e *NotReadyError) Unwrap() []error { return append([]error{errs.ErrNotReady}, e.Errs...) }
