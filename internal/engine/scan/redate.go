package scan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Jobs that a false clock has planned. Input: that the store's clock was set back, and shards that
// are new to this node. Output: their next instants, in the store, which the scan loop finds.

// redater looks at the jobs of each shard once after a start, and once more after the store's clock
// was set back: also of shards that come within an hour from then, whose former owner may have ended
// without a look.
type redater struct {
	*core.Core
	backs  int           // of the clock, as of the last look
	began  bool          // a look was done
	looked map[int]int64 // shards that were looked at, with their epochs
	// What the store has refused alone, which is tried again while all others go on.
	jobs []int64
	runs bool
}

// RedateDuty looks for jobs that are to run much later than their schedules say. Without a store that
// lists schedules it sleeps.
func RedateDuty(s *core.Core) loop.Duty {
	d := &redater{Core: s, looked: map[int]int64{}}
	reader, ok := core.Given(s.Store).(store.JobReader)
	return loop.Duty{
		What: "looking for jobs that a false clock has planned", Aside: true, Wakes: []<-chan struct{}{s.Clock.SetBack, s.Life.Wakes.Misdated},
		Once: func(ctx context.Context) (time.Duration, error) {
			if !ok {
				return loop.Forever, nil
			}
			if err := d.look(ctx, reader); err != nil || len(d.jobs) == 0 && !d.runs {
				return loop.Forever, err
			}
			return redateRefused, nil
		},
	}
}

// redateRefused is when to try again what the store refuses.
const redateRefused = 10 * time.Second

func (d *redater) look(ctx context.Context, reader store.JobReader) error {
	owned := d.Leases.Owned()
	if len(owned) == 0 || !d.Leases.Trusted(time.Now()) {
		return nil // the lease loop pokes
	}
	if err := d.again(ctx, owned); err != nil {
		return err
	}
	if backs := d.Clock.Backs(); backs != d.backs {
		d.backs = backs
		clear(d.looked)
	}
	fresh := make(map[int]int64)
	for _, sh := range owned {
		if epoch, ok := d.looked[sh.ID]; !ok || epoch != sh.Epoch {
			fresh[sh.ID] = sh.Epoch
		}
	}
	lately, _ := d.Clock.HasStepped()
	if len(fresh) > 0 && (lately || !d.began) {
		if err := errors.Join(d.redate(ctx, reader, fresh), d.redateRuns(ctx, fresh)); err != nil {
			return err
		}
	}
	for id, epoch := range fresh {
		d.looked[id] = epoch
	}
	d.began = true
	return nil
}

// again tries what the store has refused before.
func (d *redater) again(ctx context.Context, owned []store.Shard) error {
	if len(d.jobs) == 0 && !d.runs {
		return nil
	}
	shards := make(map[int]int64, len(owned))
	for _, sh := range owned {
		shards[sh.ID] = sh.Epoch
	}
	jobs := d.jobs
	d.jobs = nil
	if err := d.correct(ctx, shards, jobs); err != nil {
		d.jobs = jobs
		return err
	}
	if !d.runs {
		return nil
	}
	return d.redateRuns(ctx, shards)
}

// redatePage is how many schedules one call reads. Behind each there is a pause, as long as it took,
// unless jobs of it were due too late: then there are more of them, perhaps, and these are silent.
const redatePage = 1000

// redate goes through the schedules of all jobs, and works out anew what is due too late by them.
func (d *redater) redate(ctx context.Context, reader store.JobReader, shards map[int]int64) error {
	for after := int64(0); ; {
		began := time.Now()
		timed := core.Metered(d.Store, "Schedules")
		jobs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Job, error) { return reader.Schedules(ctx, after, redatePage) })
		if timed.End(&err); err != nil || len(jobs) == 0 {
			return err
		}
		var late []int64
		for i := range jobs {
			j := &jobs[i]
			_, mine := shards[int(j.ID%int64(d.Cfg.Cluster.Shards))]
			// What is planned ahead has rows, of which these jobs say nothing.
			if planned := d.Clock.Now().Add(2 * d.Cfg.PreRead); mine && !plan.Redated(j, planned).IsZero() {
				late = append(late, j.ID)
			}
		}
		if err := d.correct(ctx, shards, late); err != nil {
			return err
		}
		if after = jobs[len(jobs)-1].ID; len(jobs) < redatePage || ctx.Err() != nil || len(late) == 0 && !loop.Sleep(ctx, time.Since(began)) {
			return ctx.Err()
		}
	}
}

// redateRuns corrects what was triggered, or is to be tried again, by a clock that was ahead.
func (d *redater) redateRuns(ctx context.Context, shards map[int]int64) error {
	r, ok := core.Given(d.Store).(store.RunRedater)
	if !ok {
		return nil
	}
	q := store.RedateQuery{Limit: redatePage}
	for id, epoch := range shards {
		q.Shards = append(q.Shards, store.Shard{ID: id, Epoch: epoch})
	}
	for n := q.Limit; n >= q.Limit; {
		q.Now = d.Clock.Now()
		timed := core.Metered(d.Store, "RedateRuns")
		var err error
		n, err = loop.Call(ctx, func(ctx context.Context) (int, error) { return r.RedateRuns(ctx, q) })
		timed.End(&err)
		if d.runs = errors.Is(err, store.ErrRefused); d.runs {
			d.Troubles.Refused(q.Now, "", 0, store.SeenRefusesRedates, 0, err)
		} else if err != nil {
			return err
		}
		if n > 0 {
			d.Logger.Warn("xxljob: runs that a clock which was ahead has dated are due as if it had not been", "runs", n)
			d.Life.Wakes.Scan.Poke()
		}
	}
	return nil
}

// correct gives jobs their next instant by a claim that plans nothing: it compares what the job says
// with what was read, under the epoch of its shard. Of claims that the store refuses together each half
// goes by itself, until it seems to refuse all.
func (d *redater) correct(ctx context.Context, shards map[int]int64, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	jobs, err := d.ReadJobs(ctx, ids)
	if err != nil {
		return err
	}
	now := d.Clock.Now()
	plans := make([]store.Plan, 0, len(jobs))
	for _, id := range ids {
		j := jobs[id]
		if j == nil {
			continue
		}
		epoch, mine := shards[j.Shard]
		if next := plan.Redated(j, now); mine && !next.IsZero() {
			plans = append(plans, store.Plan{JobID: id, Shard: j.Shard, Epoch: epoch, Version: j.Version, Due: j.Next, Next: next})
		}
	}
	if len(plans) == 0 || !d.Leases.Trusted(time.Now()) {
		return nil
	}
	rand.Shuffle(len(plans), func(i, k int) { plans[i], plans[k] = plans[k], plans[i] }) // refused ones in front are not all that there is
	alone, taken := 0, false
	_, _, err = loop.Halve(plans, func(part []store.Plan) error {
		_, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) { return d.Store.Claim(ctx, nil, part) })
		first := &part[0]
		switch {
		case err == nil:
			taken = true
			d.Logger.Warn("xxljob: jobs were due much later than their schedules say, as after a clock that was ahead, and are worked out anew", "jobs", len(part), "first", first.JobID, "was", first.Due, "is", first.Next)
		case len(part) > 1 || !errors.Is(err, store.ErrRefused):
		case !taken && alone+1 >= loop.RefusedFew:
			return fmt.Errorf("nothing is taken: %v", err)
		default:
			if alone++; !slices.Contains(d.jobs, first.JobID) {
				d.jobs = append(d.jobs, first.JobID)
			}
			d.Troubles.Refused(now, jobs[first.JobID].App, first.JobID, store.SeenRefusesPlan, 0, err)
		}
		return err
	})
	if taken {
		d.Life.Wakes.Scan.Poke()
	}
	return err
}
