package console_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/store"
)

// readStore counts what is read for the overview, and does not answer where it hangs.
type readStore struct {
	st                  Store
	reads               atomic.Int64
	parts, mutes, whole atomic.Bool // what hangs
	slow                atomic.Bool // what needs attention takes 1.5 s
}

func (s *readStore) asked(ctx context.Context, hangs bool) error {
	s.reads.Add(1)
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *readStore) View(ctx context.Context) (store.View, error) {
	if err := s.asked(ctx, s.whole.Load()); err != nil {
		return store.View{}, err
	}
	if s.slow.Load() {
		time.Sleep(1500 * time.Millisecond)
	}
	return s.st.View(ctx)
}

func (s *readStore) Groups(ctx context.Context) ([]store.Group, error) {
	if err := s.asked(ctx, s.whole.Load()); err != nil {
		return nil, err
	}
	return s.st.Groups(ctx)
}

func (s *readStore) Reports(ctx context.Context, q store.ReportQuery) (store.ReportsFound, error) {
	if err := s.asked(ctx, s.parts.Load()); err != nil {
		return store.ReportsFound{}, err
	}
	return s.st.Reports(ctx, q)
}

func (s *readStore) SearchJobs(ctx context.Context, q store.JobSearch) ([]store.Job, error) {
	if err := s.asked(ctx, s.parts.Load() && q.Order == store.ByNext); err != nil {
		return nil, err
	}
	return s.st.SearchJobs(ctx, q)
}

func (s *readStore) Mutes(ctx context.Context) ([]store.Mute, error) {
	if err := s.asked(ctx, s.mutes.Load()); err != nil {
		return nil, err
	}
	return s.st.Mutes(ctx)
}

// TestPollsOfTheOverviewAreBounded: one takes no longer than a page may, whichever part of the store
// does not answer; parts that are there are shown, and nobody sees faults of another one's request.
func TestPollsOfTheOverviewAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readStore{st: newStore(t)}
		x := newSiteOn(t, bent.WholeOf(st.st, st))
		x.job("orders", "a job")
		for _, u := range []console.User{{Name: "root", Admin: true}, {Name: "some", Apps: map[string]console.Role{"*": console.Viewer, "billing": console.None}}} {
			b := x.user(u).get("overview").is(http.StatusOK).live()
			poll := func() time.Duration {
				time.Sleep(10 * time.Second) // what was read is kept for no longer
				began := time.Now()
				b.get("overview")
				return time.Since(began)
			}
			st.parts.Store(true)
			st.mutes.Store(true)
			if took := poll(); took > 10*time.Second {
				t.Errorf("%s waits for %v where parts are missing", u.Name, took)
			}
			b.is(http.StatusOK).has("This could not be read", "Shards without a scheduler")
			st.whole.Store(true)
			if took := poll(); took > 10*time.Second {
				t.Errorf("%s waits for %v where nothing answers", u.Name, took)
			}
			b.is(http.StatusServiceUnavailable)
			st.parts.Store(false)
			st.mutes.Store(false)
			st.whole.Store(false)
			if took := poll(); took > time.Second {
				t.Errorf("%s waits for %v where all answers", u.Name, took)
			}
			b.is(http.StatusOK).has("a job").lacks("This could not be read")
		}
	})
}

// TestViewersShareTheOverview: who looks at the overview while others do costs the store nothing, and
// is told in no time that there is nothing new; what somebody mutes is seen with the next reading.
func TestViewersShareTheOverview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readStore{st: newStore(t)}
		x := newSiteOn(t, bent.WholeOf(st.st, st))
		x.job("orders", "a job")
		admin := console.User{Name: "root", Admin: true}
		first := x.user(admin).get("overview").is(http.StatusOK).live()
		admin.Name = "other"
		other := x.user(admin).live()
		first.get("overview").is(http.StatusOK)
		seen, before := first.polls(), st.reads.Load()
		time.Sleep(1500 * time.Millisecond)
		other.get(seen).is(http.StatusNoContent)
		if got := st.reads.Load() - before; got != 0 {
			t.Errorf("the second viewer costs %d reads", got)
		}
		_, err := x.store.PutMute(xxljob.WithActor(t.Context(), "root"), store.Mute{Key: "node-away", Until: time.Now().Add(time.Hour)})
		must(t, err)
		time.Sleep(time.Second)
		other.get(seen).is(http.StatusOK).has("Muted: 1")
		if st.reads.Load() == before {
			t.Error("nothing is read any more")
		}
	})
}

// TestMutesAreReadBeforeWhatIsSlow: where what needs attention is slow and other parts of the store do not
// answer, a poll knows what is muted all the same.
func TestMutesAreReadBeforeWhatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readStore{st: newStore(t)}
		x := newSiteOn(t, bent.WholeOf(st.st, st))
		x.job("orders", "a job")
		_, err := x.store.PutMute(xxljob.WithActor(t.Context(), "root"), store.Mute{Key: "node-away", Until: time.Now().Add(time.Hour)})
		must(t, err)
		b := x.user(console.User{Name: "some", Apps: map[string]console.Role{"*": console.Viewer, "billing": console.None}}).get("overview").is(http.StatusOK).live()
		time.Sleep(10 * time.Second) // what was read is kept for no longer
		st.slow.Store(true)
		st.parts.Store(true)
		b.get("overview").is(http.StatusOK).has("This could not be read", "Muted: 1").lacks("What is muted could not be read")
	})
}
