//go:build unix

package siege

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

const (
	// stallFor is how long the store hangs, and stallEvery how often.
	stallFor, stallEvery = 3 * time.Second, time.Minute
	// stallAfter is how long behind a stall requests are still taken for its: clients have
	// given up meanwhile, and come again.
	stallAfter = 5 * time.Second
)

// stalls are when the store hung. They are safe for concurrent use.
type stalls struct {
	mu    sync.Mutex
	spans []judge.Span // guarded by mu
}

func (s *stalls) all() []judge.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]judge.Span(nil), s.spans...)
}

// stall hangs the store now and then until ctx ends.
func (s *stalls) stall(ctx context.Context, dsn string, began time.Time) error {
	for pause(ctx, stallEvery/2) {
		if err := s.once(ctx, dsn, began); err != nil {
			return err
		}
		pause(ctx, stallEvery/2)
	}
	return nil
}

// once hangs it once. The stall begins when the lock is asked for: others wait behind it.
func (s *stalls) once(ctx context.Context, dsn string, began time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	db, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("siege: stall: %w", err)
	}
	defer db.Close(ctx)
	s.mu.Lock()
	s.spans = append(s.spans, judge.Span{From: time.Since(began), To: 1 << 62})
	at := &s.spans[len(s.spans)-1]
	s.mu.Unlock()
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockTables); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "select pg_sleep($1)", stallFor.Seconds())
		return err
	})
	s.mu.Lock()
	at.To = time.Since(began) + stallAfter
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("siege: stall: %w", err)
	}
	return nil
}
