package storetest

// Windows that are over before all jobs have succeeded for them.

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

func expiryCases() []testCase {
	return []testCase{
		{"AWindowThatIsOverIsARecord", expiryRecord},
		{"AWindowThatIsOverStaysClosed", expiryStays},
		{"AWindowIsOverAfterItsTimeout", expiryTimeout},
		{"TheFirstSuccessSetsTheTimeout", expiryFirst},
		{"NothingIsMissingWhenItIsOver", expiryComplete},
		{"WindowsOfJobsThatAreNoJoins", expiryRemoved},
		{"WindowsThatAreOverFirstAreClosedFirst", expiryOrder},
		{"OnlyTheOwnerOfTheJoinClosesWindows", expiryFence},
		{"AnExpiryWithoutAnAnswerIsNotMadeTwice", expiryLostAnswer},
	}
}

// mustExpire closes windows, and checks and leaves out the records.
func (o *owner) mustExpire(before time.Time, limit int) store.Expired {
	o.Helper()
	expired, _ := o.expire(before, limit)
	return expired
}

// expire is mustExpire that returns the records too.
func (o *owner) expire(before time.Time, limit int) (expired store.Expired, records []store.Run) {
	o.Helper()
	expired, err := o.ExpireWindows(o.ctx, store.WindowQuery{Shards: o.shards, Before: before, Limit: limit})
	o.must(err)
	o.wantRecords(expired.Records)
	records, expired.Records = expired.Records, nil
	return expired, records
}

// later is when all windows are over, by any clock.
func (e *env) later() time.Time { return e.now.AddDate(50, 0, 0) }

// clock is the store's, as what it has written last says.
func (e *env) clock() time.Time {
	e.Helper()
	return e.mustAddRun(e.newJob().ID, store.Trigger{}).Created
}

func timeout(d time.Duration) func(*store.Job) {
	return func(j *store.Job) { j.AfterTimeout = d }
}

// opens is a success that opens the window of noon for the join, which waits for another job.
func (o *owner) opens(change ...func(*store.Job)) (join store.Job, success store.Run, missing store.Job) {
	o.Helper()
	one, two := o.newJob(), o.newJob()
	join = o.newJob(append(change, behind(one.ID, two.ID))...)
	success = o.succeedsAt(one.ID, noon())
	want(o.env, "paid for what opens a window", o.payAll(), store.Paid{Owed: 1})
	return join, success, two
}

func expiryRecord(e *env) {
	o := e.owner("a")
	one, two, three := e.newJob(), e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID), func(j *store.Job) {
		j.AfterKeys = []string{three.App + "/" + three.Key, "app/never/there", one.App + "/" + one.Key}
	})
	o.succeedsAt(one.ID, noon())
	o.payAll()
	expired, records := o.expire(o.later(), 9)
	want(e, "expired", expired, store.Expired{Windows: 1})
	got := e.only("over", join.ID)
	want(e, "the record that it returns", ids(records), []int64{got.ID})
	want(e, "State, Type, Reason, Count, Scheduled, Business", []any{got.State, got.Type, got.Reason, got.Count, got.Scheduled, got.Business},
		[]any{store.StateSkipped, store.TriggerParent, store.ReasonJoin, 1, midnight(), midnight()})
	line := store.WindowOver(midnight(), []string{store.IDRef(two.ID), three.App + "/" + three.Key, "app/never/there"})
	e.check(hasLine(got.TriggerMsg, line), "TriggerMsg %q lacks the line %q", got.TriggerMsg, line)
	e.check(!got.Ended.IsZero(), "a record that has not ended")
	want(e, "planned runs", len(o.allPlanned()), 0)
	want(e, "the run of the window's key", e.mustAddRun(join.ID, store.Trigger{Key: store.WindowKey(midnight())}).ID, got.ID)
}

func expiryStays(e *env) {
	o := e.owner("a")
	join, run, missing := o.opens()
	want(e, "expired", o.mustExpire(o.later(), 9), store.Expired{Windows: 1})
	want(e, "expired again", o.mustExpire(o.later(), 9), store.Expired{})
	o.succeedsAt(run.JobID, noon())
	o.succeedsAt(missing.ID, noon())
	want(e, "paid when it is too late", o.payAll(), store.Paid{Owed: 2})
	want(e, "expired after it", o.mustExpire(o.later(), 9), store.Expired{})
	want(e, "state", e.only("over", join.ID).State, store.StateSkipped)
}

// expiryTimeout compares times of the store's clock with each other only.
func expiryTimeout(e *env) {
	o := e.owner("a")
	for set, lasts := range map[time.Duration]time.Duration{0: 24 * time.Hour, time.Minute: time.Minute, 31 * 24 * time.Hour: 31 * 24 * time.Hour} {
		from := e.clock()
		join, _, _ := o.opens(timeout(set))
		to := e.clock()
		open := o.mustExpire(from.Add(lasts-2*time.Millisecond), 9)
		want(e, "closed before its time", open.Windows, 0)
		over := open.Next
		e.check(!over.Before(from.Add(lasts-time.Millisecond)) && !over.After(to.Add(lasts+time.Millisecond)), "the window of %v is over at %v, and was opened between %v and %v", set, over, from, to)
		want(e, "closed just before", o.mustExpire(over.Add(-time.Millisecond), 9), store.Expired{Next: over})
		e.wantRuns("before its time", join.ID, 0)
		want(e, "closed at its time", o.mustExpire(over, 9), store.Expired{Windows: 1})
		e.wantRuns("at its time", join.ID, 1)
	}
}

func expiryFirst(e *env) {
	o := e.owner("a")
	join, run, _ := o.opens(timeout(time.Hour))
	over := o.mustExpire(time.Time{}, 9).Next
	e.check(!over.IsZero(), "no window is open")
	e.edit(join.ID, timeout(30*time.Hour))
	o.succeedsAt(run.JobID, noon().Add(time.Minute))
	o.payAll()
	want(e, "Next after another success", o.mustExpire(time.Time{}, 9), store.Expired{Next: over})
	o.succeedsAt(run.JobID, noon().AddDate(0, 0, 1))
	o.payAll()
	want(e, "Next with a window that is over later", o.mustExpire(time.Time{}, 9), store.Expired{Next: over})
	want(e, "closed", o.mustExpire(over, 9).Windows, 1)
	e.check(o.mustExpire(over, 9).Next.After(over.Add(28*time.Hour)), "the other window is over at %v", o.mustExpire(over, 9).Next)
}

func expiryComplete(e *env) {
	o := e.owner("a")
	join, run, missing := o.opens()
	e.edit(join.ID, behind(run.JobID))
	e.wantRuns("an edit does not close a window", join.ID, 0)
	expired, records := o.expire(o.later(), 9)
	want(e, "expired", expired, store.Expired{Windows: 1})
	want(e, "records where nothing is missing", len(records), 0)
	got := e.only("nothing is missing any more", join.ID)
	want(e, "State, Type, Business, StandsFor, Depth, ParentID", []any{got.State, got.Type, got.Business, got.StandsFor, got.Depth, got.ParentID},
		[]any{store.StatePlanned, store.TriggerParent, midnight(), midnight(), 1, run.ID})
	want(e, "runs of a scan", ids(o.mustScan(o.scan(got.Scheduled)).Runs), []int64{got.ID})
	want(e, "the run of the window's key", e.mustAddRun(join.ID, store.Trigger{Key: store.WindowKey(midnight())}).ID, got.ID)
	e.edit(join.ID, behind(run.JobID, missing.ID))
	o.succeedsAt(missing.ID, noon())
	want(e, "paid after it", o.payAll(), store.Paid{Owed: 1})
	want(e, "expired after it", o.mustExpire(o.later(), 9), store.Expired{})
}

func expiryRemoved(e *env) {
	o := e.owner("a")
	removed, _, _ := o.opens()
	none, _, _ := o.opens()
	both, _, _ := o.opens()
	e.must(e.RemoveJob(e.ctx, removed.ID))
	e.edit(none.ID, behind())
	want(e, "expired", o.mustExpire(o.later(), 9), store.Expired{Windows: 3})
	e.wantRuns("of a removed job", removed.ID, 0)
	e.wantRuns("of a job that runs behind nothing", none.ID, 0)
	e.wantRuns("of one that is there", both.ID, 1)
}

// expiryOrder opens windows against the order in which they are over, over all shards.
func expiryOrder(e *env) {
	o := e.owner("a")
	var joins []int64
	for i := range 2 * numShards {
		join, _, _ := o.opens(timeout(time.Duration(20-i) * time.Hour))
		joins = append([]int64{join.ID}, joins...)
	}
	first := o.mustExpire(time.Time{}, 9).Next
	got := o.mustExpire(o.later(), 1)
	e.check(got.Windows == 1 && got.Next.After(first), "one window of eight: %+v, and the first was over at %v", got, first)
	e.wantRuns("over first", joins[0], 1)
	got = o.mustExpire(o.later(), 4)
	e.check(got.Windows == 4 && got.Next.After(first.Add(4*time.Hour)), "four windows of seven: %+v, and the first was over at %v", got, first)
	for i, join := range joins {
		e.wantRuns("closed in order", join, map[bool]int{true: 1}[i < 5])
	}
	want(e, "the rest", o.mustExpire(o.later(), 9), store.Expired{Windows: 3})
}

// expiryFence: a window is a matter of the join's shard, and what is owed to it of the parent's.
func expiryFence(e *env) {
	o := e.owner("a")
	one, two := e.jobIn(1), e.jobIn(2)
	join := e.jobIn(3, behind(one.ID, two.ID))
	expire := func(what string, n int, shards ...store.Shard) {
		e.Helper()
		expired, err := e.ExpireWindows(e.ctx, store.WindowQuery{Shards: shards, Before: e.later(), Limit: 9})
		e.must(err)
		want(e, what+": records", len(expired.Records), n)
		expired.Records = nil
		want(e, what, expired, store.Expired{Windows: n})
	}
	o.succeedsAt(one.ID, noon())
	paid, err := e.PayOwed(e.ctx, store.OwedQuery{Shards: o.shards[1:2], Limit: 9})
	e.must(err)
	want(e, "paid by the owner of the parent's shard", paid, store.Paid{Owed: 1})
	b := o.overtakenBy("b")
	expire("the former owner", 0, o.shards...)
	expire("the owner of the parent's shard", 0, b.shards[:3]...)
	expire("nobody", 0)
	expire("a shard that is not there", 0, store.Shard{ID: numShards, Epoch: 1})
	e.wantRuns("while it is open", join.ID, 0)
	expire("the owner", 1, b.shards[3])
	e.wantRuns("by the owner", join.ID, 1)
}

func expiryLostAnswer(e *env) {
	o := e.owner("a")
	join, _, _ := o.opens()
	f := Wrap(e.Store)
	f.Inject("ExpireWindows", Fault{After: true, Calls: 1})
	_, err := f.ExpireWindows(e.ctx, store.WindowQuery{Shards: o.shards, Before: o.later(), Limit: 9})
	e.wantErr("an answer that is lost", err, ErrInjected)
	want(e, "expired again", o.mustExpire(o.later(), 9), store.Expired{})
	e.wantRuns("after both", join.ID, 1)
}
