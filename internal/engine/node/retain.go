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
	// foldEvery is how often reports are added up behind those who write them, foldTimeout for how long.
	foldEvery   = 5 * time.Minute
	foldTimeout = time.Minute
)

// retainDuties drop what the store keeps until it is told to drop it, and add up reports.
func retainDuties(s *core.Core) (list []loop.Duty) {
	if r, ok := core.Given(s.Store).(store.Retainer); ok {
		list = append(list, ownersDuty(s, "dropping old runs", "DropRuns", retainEvery, retainTimeout, func(ctx context.Context) error {
			return r.DropRuns(ctx, s.Clock.Now().Add(-s.Cfg.RunRetention))
		}))
	}
	if r, ok := core.Given(s.Store).(store.ChangeRecord); ok {
		list = append(list, ownersDuty(s, "dropping old changes", "DropChanges", retainEvery, retainTimeout, func(ctx context.Context) error {
			return r.DropChanges(ctx, s.Clock.Now().Add(-s.Cfg.ChangeRetention))
		}))
	}
	if r, ok := core.Given(s.Store).(store.RunDropper); ok {
		list = append(list, catalog.KeepDuty(s, r))
	}
	if f, ok := core.Given(s.Store).(store.ReportFolder); ok {
		list = append(list, ownersDuty(s, "adding up reports", "FoldReports", foldEvery, foldTimeout, f.FoldReports))
	}
	return list
}

// linksDuty looks for links of jobs that nobody might make.
func (s *Node) linksDuty() loop.Duty {
	accounts, _ := core.Given(s.Store).(store.AccountStore)
	return s.LinksDuty(accounts)
}

// ownersDuty has the store do something by itself now and then, at the node that owns the first shard. It
// is done again after an error no sooner than else: what is too old may be so for a while more.
func ownersDuty(s *core.Core, what, method string, every, timeout time.Duration, call func(context.Context) error) loop.Duty {
	backoff := loop.Backoff{Log: s.Logger, What: what}
	return loop.Duty{Aside: true, After: retainFirst, Once: func(ctx context.Context) (time.Duration, error) {
		if _, mine := s.Leases.Epoch(0); !mine {
			return every, nil
		}
		if why, _ := s.Clock.Doubt(); why != "" {
			return clockEvery, nil
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		timed := core.Metered(s.Store, method)
		err := call(bounded)
		timed.End(&err)
		backoff.Failed(ctx, err)
		return every, nil
	}}
}

// sayRetention tells a store that plans runs by itself how long they are kept.
func sayRetention(s store.Store, d time.Duration) {
	if r, ok := s.(store.RetentionAware); ok {
		r.KnowRetention(d)
	}
}
