package xxljob

// What is older than RunRetention is dropped, by the node that owns the first
// shard, where the store keeps runs by their age.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

const (
	// retainFirst is when old runs are dropped after a start, retainEvery how often
	// from then on.
	retainFirst = time.Minute
	retainEvery = time.Hour
	// retainTimeout bounds one go.
	retainTimeout = 30 * time.Minute
)

// retainDuty drops old runs.
func retainDuty(s *shared, r store.Retainer) duty {
	first, backoff := true, backoff{log: s.log, what: "dropping old runs"}
	return duty{aside: true, once: func(ctx context.Context) (time.Duration, error) {
		if first {
			first = false
			return retainFirst, nil
		}
		if _, mine := s.leases.epoch(0); !mine {
			return retainEvery, nil
		}
		bounded, cancel := context.WithTimeout(ctx, retainTimeout)
		defer cancel()
		backoff.failed(ctx, r.DropRuns(bounded, s.clock.now().Add(-s.cfg.RunRetention)))
		return retainEvery, nil // also after an error: what is too old may be so for an hour more
	}}
}

// sayRetention tells a store that plans runs by itself how long they are kept.
func sayRetention(s Store, d time.Duration) {
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
func foldDuty(s *shared, f store.ReportFolder) duty {
	backoff := backoff{log: s.log, what: "adding up reports"}
	return duty{aside: true, once: func(ctx context.Context) (time.Duration, error) {
		if _, mine := s.leases.epoch(0); mine {
			bounded, cancel := context.WithTimeout(ctx, foldTimeout)
			defer cancel()
			backoff.failed(ctx, f.FoldReports(bounded))
		}
		return foldEvery, nil
	}}
}
