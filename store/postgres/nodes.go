package postgres

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
)

// Now returns the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.read(ctx, statement{s.sql.clock, nil, scanInto(&now)})
	if err != nil {
		return time.Time{}, failed(err, "read the clock")
	}
	s.learn(now)
	return now.UTC(), nil
}

// Join adds a node under a new incarnation. In lock mode it makes the node's lock
// connection.
func (s *Store) Join(ctx context.Context, n xxljob.Node) (xxljob.View, error) {
	if err := s.setMode(ctx); err != nil {
		return xxljob.View{}, failed(err, "join")
	}
	view, err := s.beat(ctx, "join", n.Incarnation, n.ID, true, n.Attached)
	if err != nil {
		return xxljob.View{}, failed(err, "join")
	}
	s.wakeNodes()
	return view, nil
}

// Beat raises the node's counter and returns the cluster. In lock mode it goes
// over the lock connection, which it makes anew where that has broken, and asks
// again for locks that the node should have and has not.
func (s *Store) Beat(ctx context.Context, incarnation string, attached []xxljob.Attachment) (xxljob.View, error) {
	id := incarnation
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		id = id[:i]
	}
	view, err := s.beat(ctx, "beat", incarnation, id, false, attached)
	return view, failed(err, "beat")
}

func (s *Store) beat(ctx context.Context, name, incarnation, id string, join bool, attached []xxljob.Attachment) (xxljob.View, error) {
	if err := ended(ctx); err != nil {
		return xxljob.View{}, err
	}
	if attached == nil && join {
		attached = []xxljob.Attachment{} // null says that the node is resting
	}
	text, err := json.Marshal(attached)
	if err != nil {
		return xxljob.View{}, err
	}
	v := viewReader{store: s}
	statementOf := func(l *lockSession) statement {
		pid, start, lockName := l.identity()
		return statement{s.sql.beat, []any{incarnation, id, join, string(text), pid, start, lockName, s.locks(), s.lockClass, s.nodeClass}, v.read}
	}
	if !s.locks() {
		err = s.one(ctx, bounds{name: name}, statementOf(nil))
	} else {
		err = s.onSession(ctx, name, incarnation, statementOf)
	}
	if err != nil {
		return xxljob.View{}, err
	}
	s.learn(v.view.Now)
	s.remember(&v)
	if s.locks() {
		s.relock(ctx, incarnation, v.view.Shards)
	}
	if v.revived {
		s.wakeNodes()
	}
	return v.view, nil
}

// viewReader reads the one row of a beat.
type viewReader struct {
	store   *Store
	view    xxljob.View
	revived bool
}

func (v *viewReader) read(rows pgx.Rows) error {
	var now, serverStart time.Time
	var names, ids, owners, attached []string
	var beats, joined, epochs []int64
	var left, away, failing, free []bool
	var shards []int16
	if err := rows.Scan(&now, &serverStart, &v.revived, &names, &ids, &beats, &left, &away, &joined, &attached, &failing, &shards, &owners, &epochs, &free); err != nil {
		return err
	}
	// A standby that was promoted was started at a time of its own.
	v.view = xxljob.View{Now: now.UTC(), Server: serverStart.UTC().Format(time.RFC3339Nano)}
	for i, name := range names {
		n := xxljob.Node{ID: ids[i], Incarnation: name, Beats: beats[i], Left: left[i], Failing: failing[i], Away: away[i], Joined: fromMilli(joined[i])}
		n.Resting = attached[i] == "null"
		if err := json.Unmarshal([]byte(attached[i]), &n.Attached); err != nil {
			return err
		}
		if len(n.Attached) == 0 {
			n.Attached = nil
		}
		v.view.Nodes = append(v.view.Nodes, n)
	}
	for i, id := range shards {
		v.view.Shards = append(v.view.Shards, xxljob.Shard{ID: int(id), Owner: owners[i], Epoch: epochs[i], Free: free[i]})
	}
	return nil
}

// SetFailing stores whether the node's claims or starts fail. In lock mode that goes over
// the lock connection: the pool may be what they fail for.
func (s *Store) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	changed := false
	err := s.besidePool(ctx, bounds{name: "set_failing"}, incarnation, statement{s.sql.setFailing, []any{incarnation, failing}, func(pgx.Rows) error {
		changed = true
		return nil
	}})
	if err == nil && changed {
		s.wakeNodes()
	}
	return failed(err, "set failing")
}

// hintPatience is how long a node that leaves tries to send a hint, with the wait for the
// pool.
const hintPatience = time.Second

// Leave marks the node as left and releases its shards, and with them its locks.
func (s *Store) Leave(ctx context.Context, incarnation string) error {
	err := s.inTx(ctx, bounds{name: "leave"}, func(t *tx) error {
		return t.do(ctx, statement{s.sql.lockNode, []any{incarnation}, nil},
			statement{s.sql.leaveNode, []any{incarnation}, nil},
			statement{s.sql.leaveShards, []any{incarnation}, nil})
	})
	if err != nil {
		return failed(err, "leave")
	}
	s.endSession(incarnation)
	s.wakeNodes()
	if s.locks() && !s.alone() {
		// At once, for the process may end before the hint that waits its turn is sent;
		// but a hint is not worth a long wait for a pool that the host uses up.
		hint, cancel := context.WithTimeout(ctx, hintPatience)
		defer cancel()
		_ = s.notify(hint, []string{string(hintNodes)})
	}
	return nil
}

// Bury marks a silent node as left and deletes it once its runs are settled. A
// start at the node holds its row: it is either seen here, or finds the node gone.
func (s *Store) Bury(ctx context.Context, incarnation string, beats int64) error {
	changed := 0
	count := func(pgx.Rows) error { changed++; return nil }
	lo, hi := wideRange()
	err := s.inTx(ctx, bounds{name: "bury"}, func(t *tx) error {
		changed = 0
		return t.do(ctx, statement{s.sql.lockNode, []any{incarnation}, nil},
			statement{s.sql.buryLeft, []any{incarnation, beats}, count},
			statement{s.sql.buryNode, []any{incarnation, beats, xxljob.LocalAddress(incarnation), lo, hi}, count},
			statement{s.sql.dropLists, []any{incarnation}, nil})
	})
	if err == nil && changed > 0 {
		s.wakeNodes()
	}
	return failed(err, "bury a node")
}
