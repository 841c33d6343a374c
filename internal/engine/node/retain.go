package node

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// What is older than RunRetention, or ChangeRetention, is dropped, by the node that owns the
// first shard, where the store keeps runs and changes by their age. While the store's clock is
// doubted (core.Clock.Doubt) nothing is.

const (
	// retainFirst is when what is old is dropped after a start, retainEvery how often
	// from then on.
	retainFirst = time.Minute
	retainEvery = time.Hour
	// retainTimeout bounds one go.
	retainTimeout = 30 * time.Minute
)

// retainDuties drop what the store keeps until it is told to drop it.
func retainDuties(s *core.Core) (list []loop.Duty) {
	if r, ok := core.Given(s.Store).(store.Retainer); ok {
		list = append(list, retainDuty(s, "dropping old runs", "DropRuns", s.Cfg.RunRetention, r.DropRuns))
	}
	if r, ok := core.Given(s.Store).(store.ChangeRecord); ok {
		list = append(list, retainDuty(s, "dropping old changes", "DropChanges", s.Cfg.ChangeRetention, r.DropChanges))
	}
	if r, ok := core.Given(s.Store).(store.RunDropper); ok {
		list = append(list, catalog.KeepDuty(s, r))
	}
	if f, ok := core.Given(s.Store).(store.ReportFolder); ok {
		list = append(list, foldDuty(s, f))
	}
	return list
}

// linksDuty looks for links of jobs that nobody might make.
func (s *Node) linksDuty() loop.Duty {
	accounts, _ := core.Given(s.Store).(store.AccountStore)
	return s.LinksDuty(accounts)
}

// retainDuty drops what is older than it is to be kept, by a method of the store.
func retainDuty(s *core.Core, what, method string, kept time.Duration, drop func(context.Context, time.Time) error) loop.Duty {
	first, backoff := true, loop.Backoff{Log: s.Logger, What: what}
	return loop.Duty{Aside: true, Once: func(ctx context.Context) (time.Duration, error) {
		if first {
			first = false
			return retainFirst, nil
		}
		if _, mine := s.Leases.Epoch(0); !mine {
			return retainEvery, nil
		}
		if why, _ := s.Clock.Doubt(); why != "" {
			return clockEvery, nil
		}
		bounded, cancel := context.WithTimeout(ctx, retainTimeout)
		defer cancel()
		timed := core.Metered(s.Store, method)
		err := drop(bounded, s.Clock.Now().Add(-kept))
		timed.End(&err)
		backoff.Failed(ctx, err)
		return retainEvery, nil // also after an error: what is too old may be so for an hour more
	}}
}

// sayRetention tells a store that plans runs by itself how long they are kept.
func sayRetention(s store.Store, d time.Duration) {
	if r, ok := s.(store.RetentionAware); ok {
		r.KnowRetention(d)
	}
}

const (
	// foldEvery is how often reports are added up behind those who write them.
	foldEvery   = 5 * time.Minute
	foldTimeout = time.Minute
)

// foldDuty adds up reports, at the node that owns the first shard.
func foldDuty(s *core.Core, f store.ReportFolder) loop.Duty {
	first, backoff := true, loop.Backoff{Log: s.Logger, What: "adding up reports"}
	return loop.Duty{Aside: true, Once: func(ctx context.Context) (time.Duration, error) {
		if first {
			first = false
			return retainFirst, nil
		}
		if why, _ := s.Clock.Doubt(); why != "" {
			return clockEvery, nil
		}
		if _, mine := s.Leases.Epoch(0); mine {
			bounded, cancel := context.WithTimeout(ctx, foldTimeout)
			defer cancel()
			timed := core.Metered(s.Store, "FoldReports")
			err := f.FoldReports(bounded)
			timed.End(&err)
			backoff.Failed(ctx, err)
		}
		return foldEvery, nil
	}}
}
