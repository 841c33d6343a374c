package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Runs that are planned so far ahead that they are kept apart. Here that takes no table of
// its own: such a run is in its segment as any other, so that whoever asks for it by its id,
// its key or its job finds it; but it is in none of the sets that scans go by until it has
// moved. Its id is the next one, like that of any run, and it has not ended, so that no
// bound of Retain concerns it.

// AddAhead inserts a run that is kept apart until the time to move.
func (s *Store) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (store.Run, error) {
	return s.addRun(ctx, jobID, t, &move)
}

// MoveAhead makes ordinary planned runs of those whose time to move has come.
func (s *Store) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	if err := s.begin(ctx); err != nil {
		return store.Moved{}, err
	}
	defer s.done()
	var due merged[run]
	for _, sh := range q.Shards {
		if own := s.fenced(sh.ID, sh.Epoch); own != nil {
			due.add(&own.ahead, noID, noID)
		}
	}
	found, _ := due.take(toMilli(stored(q.Before)), q.Limit)
	moved := store.Moved{Runs: len(found)}
	if e := due.peek(); e != nil {
		moved.Next = fromMilli(e.at)
	}
	for _, r := range found { // from here on due is out of date
		s.leave(r)
		r.ahead, r.foreign = false, true
		s.enter(r)
		s.tellScan(r.job)
	}
	return moved, nil
}
