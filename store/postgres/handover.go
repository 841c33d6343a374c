package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xxljob/xxljob"
)

// Readdress moves a started run, which nobody but its owner has had, to another
// address.
func (s *Store) Readdress(ctx context.Context, m xxljob.Readdress) (bool, error) {
	in, epochs := fenceArgs([]xxljob.Shard{{ID: m.Shard, Epoch: m.Epoch}})
	inbox := inboxColumn(m.Owner, m.Address)
	var there []string
	if inbox != "" {
		there = append(there, inbox)
	}
	var moved []int64
	err := s.one(ctx, bounds{name: "readdress"}, statement{s.sql.readdress, []any{in, epochs, there, m.RunID, m.Token,
		m.Address, nonempty(ownerColumn(m.Owner, m.Address)), nonempty(inbox), isAt(m.Owner, m.Address), m.Msg, m.Owner}, readIDs(&moved)})
	if err != nil {
		return false, failed(err, "readdress run %d", m.RunID)
	}
	if len(moved) > 0 && inbox != "" {
		s.wakeInbox(inbox)
	}
	return len(moved) > 0, nil
}

// Dispatched marks a started run as accepted by a remote executor.
func (s *Store) Dispatched(ctx context.Context, runID int64, owner string, token int64, msg string) (bool, error) {
	var marked []int64
	err := s.one(ctx, bounds{name: "dispatched"}, statement{s.sql.dispatched, []any{runID, owner, token, msg}, readIDs(&marked)})
	return len(marked) > 0, failed(err, "mark run %d dispatched", runID)
}

// StartedBy returns started runs of the incarnations.
func (s *Store) StartedBy(ctx context.Context, shards []xxljob.Shard, incarnations []string, after int64, limit int) ([]xxljob.Run, error) {
	in, _ := fenceArgs(shards)
	if len(in) == 0 || len(incarnations) == 0 || limit <= 0 {
		return nil, ctx.Err()
	}
	var addresses []string
	for _, inc := range incarnations {
		addresses = append(addresses, xxljob.LocalAddress(inc))
	}
	lo, hi := s.openRange()
	var runs []xxljob.Run
	err := s.read(ctx, statement{s.sql.startedBy, []any{in, incarnations, addresses, after, limit, lo, hi}, readRuns(&runs)})
	return runs, failed(err, "read started runs")
}

// Inbox returns what waits for the incarnation: in one statement, for it is mostly
// nothing, and is asked for all the time.
func (s *Store) Inbox(ctx context.Context, incarnation string, after int64, limit int) (xxljob.Inbox, error) {
	var box xxljob.Inbox
	if incarnation == "" {
		return box, ctx.Err()
	}
	lo, hi := s.openRange()
	err := s.read(ctx, statement{s.sql.inbox, []any{incarnation, after, max(limit, 0), xxljob.LocalAddress(incarnation), lo, hi}, readInbox(&box, incarnation)})
	if err != nil {
		return xxljob.Inbox{}, failed(err, "read the inbox")
	}
	return box, nil
}

// readInbox tells the three kinds of rows apart.
func readInbox(box *xxljob.Inbox, incarnation string) result {
	var row runRow
	var ask pgtype.Int8
	var from pgtype.Int4
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ask, &from)
		switch {
		case err != nil:
			return err
		case ask.Valid:
			box.Asks = append(box.Asks, xxljob.Ask{ID: ask.Int64, Incarnation: incarnation, Run: run, FromLine: int(from.Int32)})
		case run.Taken.IsZero():
			box.Runs = append(box.Runs, run)
		default:
			box.Kills = append(box.Kills, run)
		}
		return nil
	}
}

// Take marks runs as taken by their addressee. What others have locked stays for
// the next look into the inbox.
func (s *Store) Take(ctx context.Context, incarnation string, ids []int64) ([]xxljob.Run, error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	lo, hi := rangeOf(ids)
	args := []any{incarnation, ids, lo, hi}
	var killed []xxljob.Run
	take := func(sql string) (changed []xxljob.Run, done arming, err error) {
		err = s.inTx(ctx, bounds{name: "take", lock: quickPatience}, func(t *tx) error {
			changed, done = nil, arming{}
			killed = nil
			if err := t.do(ctx, statement{sql, args, readRuns(&changed)}, statement{s.sql.takeKilled, args, readRuns(&killed)}); err != nil {
				return err
			}
			changed = append(changed, killed...)
			var err error
			done, err = s.arm(ctx, t, endedOf(killed), nil)
			return err
		})
		return changed, done, err
	}
	sql := s.sql.take
	if s.careful() {
		sql = s.sql.takeFree
	}
	changed, done, err := take(sql)
	if lockedOut(err) && sql == s.sql.take {
		s.beCareful()
		changed, done, err = take(s.sql.takeFree)
	}
	if err != nil {
		return nil, failed(err, "take %d runs", len(ids))
	}
	s.tell(done)
	s.serials.ended(killed)
	s.wakeEnded(len(killed))
	slices.SortFunc(changed, func(a, b xxljob.Run) int { return cmp.Compare(a.ID, b.ID) })
	return changed, nil
}
