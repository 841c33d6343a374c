package stage

// Stores that fail, or show what is seldom seen.

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest"
)

// NeverAlone is a store that asks every node for beats, as one does that others
// may open unseen.
type NeverAlone struct{ xxljob.Store }

func (s NeverAlone) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	v, err := s.Store.Join(ctx, n)
	v.Alone = false
	return v, err
}

func (s NeverAlone) Beat(ctx context.Context, inc string, attached []store.Attachment) (xxljob.View, error) {
	v, err := s.Store.Beat(ctx, inc, attached)
	v.Alone = false
	return v, err
}

// PlannedApart is a store whose scans return only what others have inserted: runs that
// a schedule bore are left to Planned, as the contract allows.
type PlannedApart struct{ xxljob.Store }

func (s PlannedApart) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := s.Store.Scan(ctx, dst, q)
	for err == nil && len(res.Runs) == q.Runs { // a full page, which it will not return again
		var more store.ScanResult
		more, err = s.Store.Scan(ctx, store.ScanResult{}, q)
		res.Runs, res.Next = more.Runs, more.Next
	}
	res.Runs = slices.DeleteFunc(res.Runs, func(r xxljob.Run) bool { return r.Type.ScheduleBorn() })
	return res, err
}

// BreakDown makes calls of a node fail until the returned function is called.
func (n *Node) BreakDown(methods []string, f storetest.Fault) (mend func()) {
	var remove []func()
	for _, m := range methods {
		remove = append(remove, n.Faults.Inject(m, f))
	}
	return func() {
		for _, r := range remove {
			r()
		}
	}
}

// BlindInbox is the store of a node that does not look into its inbox.
type BlindInbox struct{ xxljob.Store }

func (BlindInbox) Inbox(context.Context, string, int64, int) (store.Inbox, error) {
	return store.Inbox{}, nil
}
