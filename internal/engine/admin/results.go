package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/dispatch"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/fairqueue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Results that come over HTTP. Input: callbacks of executors elsewhere, to any node.
// Output: final states in the store. A callback is answered 200 once every result in it
// is stored or known not to matter; otherwise its executor sends all of it again.

const (
	// reportPatience is how long a callback waits for the store; Java executors wait
	// for 3 s.
	reportPatience = 2500 * time.Millisecond
	// maxHandleMsg is how much of a result's text is kept, in bytes (docs/xxl-job.md,
	// texts: 15,000 characters).
	maxHandleMsg = 15_000
	// fullCallback is how many results executors send in one callback at most: ours, and XXL-JOB's.
	fullCallback = 50
	msgReport    = "the results cannot be stored at this moment, send them again later"
)

// Results stores the results that executors elsewhere report.
type Results struct {
	*core.Core
	dispatch   *dispatch.Dispatcher
	authorizer *Authorizer
	Intake     *fairqueue.Queue[reported]
}

func NewResults(s *core.Core, d *dispatch.Dispatcher, authorizer *Authorizer) *Results {
	return &Results{s, d, authorizer, fairqueue.New[reported](resultBounds())}
}

// resultBounds are room for a page of the greatest size from each app, or for many small
// ones.
func resultBounds() fairqueue.Bounds {
	return fairqueue.Bounds{OfApp: 8 << 20, InAll: 64 << 20, Batch: loop.StoreBatch, BatchBytes: 4 << 20, AtOnce: loop.StoreBatch / 4, Kept: 10 * time.Minute, Retries: true}
}

// reported is a result that has come, and who from.
type reported struct {
	caller wire.Caller
	res    store.Result
	exact  bool  // whether it was a kill, its executor has said
	date   int64 // of its run, as its executor has it, in ms
	counts bool  // it concerned its run when that was read last
	failed bool  // it is not stored, and matters
}

// isOf reports whether the result is of this run, and not of one that had its id before:
// in a scheduler whose ids began anew, or a database that was emptied. Our executors, and
// XXL-JOB's own, send the date that came with the trigger; of others that is not known,
// and some send another one.
func (r *reported) isOf(run *store.Run) bool {
	return !r.exact && !r.caller.Java || dispatch.SameDate(r.date, run)
}

// report has results stored, with the next batch where the loops run.
func (s *Results) report(ctx context.Context, caller wire.Caller, list []*reported, size int) error {
	if !s.Life.Running() {
		return s.storeResults(urgent.Mark(ctx), list)
	}
	p, err := s.Intake.Add(fairqueue.Origin{Scope: caller.Scope, App: caller.App}, size, list...)
	if err != nil {
		return err
	}
	return p.Wait(ctx, reportPatience)
}

// reportsOf are the results of a request, and the memory that they take. Of several that
// are of one run, the first counts.
func reportsOf(caller wire.Caller, reqs []wire.CallbackRequest) (list []*reported, size int) {
	type run struct{ id, date int64 }
	seen, first := make(map[run]bool, min(len(reqs), fullCallback)), reqs[:0] // what is repeated takes no room while the rest waits
	for _, r := range reqs {
		if of := (run{r.LogID, r.LogDateTim}); !seen[of] {
			seen[of] = true
			first = append(first, r)
		}
	}
	all := make([]reported, len(first)) // together: they come and go together
	list = make([]*reported, len(first))
	for i := range first {
		r := &first[i]
		all[i] = reported{caller: caller, res: reportOf(*r), exact: r.Exact, date: r.LogDateTim}
		list[i] = &all[i]
		size += fairqueue.PartSize + len(all[i].res.HandleMsg) + len(all[i].res.ProgressText)
	}
	return list, size
}

// reportOf is a callback as a result. It carries no fence: whoever was sent the run may
// report it, while it is started or dispatched. A Java executor tells by the text alone
// that it has killed the run.
func reportOf(r wire.CallbackRequest) store.Result {
	res := dispatch.ResultOf(&r)
	res.HandleMsg = errs.PlainText(errs.Shorten(res.HandleMsg, maxHandleMsg))
	if r.HandleCode == 0 && res.HandleMsg == "" {
		res.HandleMsg = wire.MsgResultLost
	}
	if res.State == store.StateFailed && !r.Exact && wire.IsKilled(r.HandleMsg) {
		res.State = store.StateKilled
		if wire.IsShutdown(r.HandleMsg) {
			res.State = store.StateLost
		}
	}
	return res
}

// result is what is stored. A failure of a run that was to be killed is taken for the
// kill, from third-party executors: not all have words for it, and their report may be
// quicker than their answer to the kill. A result that is quicker than the answer to the
// trigger, which no more is stored then, says itself that the run was accepted.
func (r *reported) result(run *store.Run) store.Result {
	res := r.res
	if run.State == store.StateStarted {
		res.TriggerMsg = run.Address + ": accepted, and the result was reported at once"
	}
	if res.State == store.StateFailed && !r.exact && run.KillReason != "" {
		res.State = store.StateKilled
	}
	return res
}

// ResultLoop stores what comes until ctx ends. Those who have sent several results together hear
// of it a moment after they are stored, so that the next ones gather: not where a callback may have
// been full, for its executor has more.
func (s *Results) ResultLoop(ctx context.Context) {
	s.Intake.Loop(ctx, 0, loop.Backoff{Log: s.Logger, What: "storing reported results"}, func(ctx context.Context, list []*reported) error {
		err := s.storeResults(ctx, list)
		if err == nil && len(list) < fullCallback {
			s.dispatch.LetGather(ctx, len(list))
		}
		return err
	})
}

// storeResults stores results in pages; after an error some are stored, and their
// repetition does no harm. A run whose row others have locked fails its own result only.
func (s *Results) storeResults(ctx context.Context, list []*reported) error {
	for len(list) > 0 {
		page := list[:min(len(list), loop.StoreBatch)]
		list = list[len(page):]
		results, err := s.admissible(ctx, page)
		if err != nil {
			return err
		}
		if len(results) == 0 {
			continue
		}
		err = s.finish(ctx, page, results)
		if errors.Is(err, store.ErrRefused) {
			err = s.finishHalves(ctx, page, results)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish stores results of a page.
func (s *Results) finish(ctx context.Context, page []*reported, results []store.Result) error {
	accepted, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.Finish(ctx, nil, results) })
	s.dispatch.Ended(accepted)
	if errors.Is(err, store.ErrLocked) {
		err = s.markLocked(ctx, of(page, results), accepted)
	}
	return err
}

// finishHalves stores each half by itself of results that the store has refused together. One that
// it refuses three times alone is stored without its texts; where it refuses even that, the result
// fails by itself: its executor sends it again.
func (s *Results) finishHalves(ctx context.Context, page []*reported, results []store.Result) error {
	tried, taken := 0, false
	alone, why, err := loop.Halve(results, func(part []store.Result) error {
		err := s.finish(ctx, page, part)
		taken = taken || err == nil
		for range loop.RefusedTries - 1 {
			if len(part) == 1 && errors.Is(err, store.ErrRefused) {
				err = s.finish(ctx, page, part)
			}
		}
		if errors.Is(err, store.ErrRefused) && len(part) == 1 {
			if tried++; tried >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := range alone {
		err := s.finish(ctx, page, []store.Result{dispatch.WithoutTexts(alone[i])})
		switch {
		case err == nil:
			s.dispatch.LogTextsDropped(ctx, &alone[i], why)
		case !errors.Is(err, store.ErrRefused):
			return err
		default:
			for _, r := range of(page, alone[i:i+1]) {
				r.failed = true
			}
		}
	}
	return nil
}

// of are those of the page that are of the same runs as results.
func of(page []*reported, results []store.Result) (list []*reported) {
	runs := make(map[int64]bool, len(results))
	for i := range results {
		runs[results[i].RunID] = true
	}
	for _, r := range page {
		if runs[r.res.RunID] {
			list = append(list, r)
		}
	}
	return list
}

// markLocked finds out which results of a page are not stored, beside those that do not
// matter.
func (s *Results) markLocked(ctx context.Context, page []*reported, accepted []store.Run) error {
	stored := core.IdsOf(accepted)
	var rest []*reported
	for _, r := range page {
		if !stored[r.res.RunID] {
			rest = append(rest, r)
		}
	}
	if _, err := s.admissible(ctx, rest); err != nil {
		return err
	}
	for _, r := range rest {
		r.failed = r.failed || r.counts
	}
	return nil
}

// admissible leaves out results of runs that the caller may not speak for, or that do
// not exist: which of the two, nobody is told. Attached executors report in another
// way, which their runs are fenced by.
func (s *Results) admissible(ctx context.Context, page []*reported) ([]store.Result, error) {
	byID, err := s.runsOf(ctx, page)
	if err != nil {
		return nil, err
	}
	results := make([]store.Result, 0, len(page))
	has := make(map[int64]bool, len(page)) // further results of a run change nothing
	for _, r := range page {
		run := byID[r.res.RunID]
		r.counts, r.failed = false, false
		if run != nil {
			r.counts, r.failed = s.concerns(r, run)
		}
		if r.counts && !has[run.ID] {
			has[run.ID] = true
			s.sayRefused(run)
			results = append(results, r.result(run))
		}
	}
	return s.withTimeouts(ctx, results, byID), nil
}

// runsOf are the runs of results, by their ids. Those that this node has sent a moment ago and that
// have succeeded are not read: nobody else has decided about them since, and that somebody wants
// them killed changes nothing.
func (s *Results) runsOf(ctx context.Context, page []*reported) (map[int64]*store.Run, error) {
	ids := make([]int64, len(page))
	for i, r := range page {
		ids[i] = r.res.RunID
	}
	byID := make(map[int64]*store.Run, len(page))
	var unknown []int64
	for i, run := range s.asSent(ids) {
		if run != nil && page[i].res.State == store.StateSucceeded {
			byID[run.ID] = run
		} else {
			delete(byID, ids[i]) // what is read of it counts
			unknown = append(unknown, ids[i])
		}
	}
	if len(unknown) == 0 {
		return byID, nil
	}
	runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return s.Store.RunsByID(ctx, unknown) })
	for i := range runs {
		byID[runs[i].ID] = &runs[i]
	}
	return byID, err
}

// asSent are the runs that are as this node has sent them, nil for others: none where it is not
// trusted with its shards.
func (s *Results) asSent(ids []int64) []*store.Run {
	if !s.Leases.Trusted(time.Now()) {
		return make([]*store.Run, len(ids))
	}
	return s.dispatch.AsSent(ids, s.Leases.Times.Window)
}

// concerns reports whether a result may change something about a run, or later might, when
// its sender may speak for the app again. Of a lost run, and of one
// that was refused, the first is noted, unless it says no more than that.
func (s *Results) concerns(r *reported, run *store.Run) (now, later bool) {
	open := !run.State.Ended()
	if !store.IsRemote(run.Address) || !r.isOf(run) || !open && (run.State != store.StateLost && run.State != store.StateRefused || run.LateNoted || r.res.State == store.StateLost) {
		return false, false
	}
	why, later := s.authorizer.whyNot(r.caller, run.App)
	return why == "", open && later
}

// sayRefused names the address of a run that was refused, and of which a result has come.
func (s *Results) sayRefused(run *store.Run) {
	if run.State != store.StateRefused {
		return
	}
	seen := store.Seen{What: store.SeenFalseRefusal, RunID: run.ID, Said: run.HandleMsg}
	if run.Secret {
		seen.What, seen.Said = store.SeenFalseRefusalSecret, ""
	}
	s.Troubles.Saw(store.TroubleFalseRefusal, s.Clock.Now(), falseRefusalKept, store.Trouble{
		App: run.App, Address: run.Address, Seen: seen,
		Remedy: "look at what stands in front of the executor: it passes requests on, and answers them by itself",
	})
}

// falseRefusalKept is for how long an address is named whose executor has run what was refused.
const falseRefusalKept = 10 * time.Minute

// withTimeouts has results say which timeout was over, as far as that is known: not where
// the job has changed since the run was started, or cannot be read.
func (s *Results) withTimeouts(ctx context.Context, results []store.Result, runs map[int64]*store.Run) []store.Result {
	var late []store.Run
	for i := range results {
		if res := &results[i]; res.State == store.StateTimedOut {
			late = append(late, *runs[res.RunID])
		}
	}
	if len(late) == 0 {
		return results
	}
	jobs, err := s.ReadJobs(ctx, core.JobsOf(late))
	if err != nil {
		return results
	}
	for i, res := range results {
		run := runs[res.RunID]
		if job := jobs[run.JobID]; job != nil && job.Version == run.JobVersion {
			results[i] = dispatch.WithTimeout(res, job)
		}
	}
	return results
}
