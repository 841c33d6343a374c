package xxljob_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestNodesSayWhatTheyAre: each node says in the store of which release it is, and how far the store's clock is
// ahead of its own, anew when that has moved.
func TestNodesSayWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		ahead := 5 * time.Second
		st.GoBy(func() time.Time { return time.Now().Add(ahead) })
		for _, node := range []string{"a", "b"} {
			s, err := xxljob.New(st, xxljob.Config{App: "app", Node: node, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Stop(t.Context()) }()
		}
		check := func(want time.Duration) {
			t.Helper()
			v, err := st.View(t.Context())
			if err != nil || len(v.Nodes) != 2 {
				t.Fatalf("nodes %+v, %v", v.Nodes, err)
			}
			for _, n := range v.Nodes {
				if n.Version == "" || (n.ClockOffset-want).Abs() > 500*time.Millisecond {
					t.Errorf("node %s is of release %q, its store %v ahead, want %v", n.ID, n.Version, n.ClockOffset, want)
				}
			}
		}
		time.Sleep(time.Minute)
		check(5 * time.Second)
		st.GoBy(func() time.Time { return time.Now().Add(2 * ahead) })
		time.Sleep(time.Minute)
		check(10 * time.Second)
	})
}

// notesRefused is a store that takes nothing of what nodes say of themselves beside their beats.
type notesRefused struct{ hangs bool }

func (s notesRefused) refuse(ctx context.Context) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no room for that")
}

func (s notesRefused) NoteProcess(ctx context.Context, _ string, _ store.Process) error {
	return s.refuse(ctx)
}

func (s notesRefused) NoteUnknownZones(ctx context.Context, _ string, _ []string) error {
	return s.refuse(ctx)
}

// TestNoLeaseIsLostOverANote: nodes of a store that cannot take what they say of their processes, or of zones
// that they have no data of, beat on and run what is due, with one line each in the log.
func TestNoLeaseIsLostOverANote(t *testing.T) {
	for name, hangs := range map[string]bool{"refused": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, log := memory.New(), new(stage.LogLines)
				st := bent.AllOf(mem, notesRefused{hangs})
				for _, node := range []string{"a", "b"} {
					s, err := xxljob.New(st, xxljob.Config{App: "app", Node: node, Logger: slog.New(slog.NewTextHandler(log, nil))})
					stage.Must(t, err)
					stage.Must(t, s.Handle("work", stage.NothingToDo))
					stage.Must(t, s.Start(t.Context()))
					defer func() { stage.Must(t, s.Stop(context.WithoutCancel(t.Context()))) }()
					defer func() { stage.Must(t, s.Ready()) }()
					_, err = s.EnsureJob(t.Context(), xxljob.Job{Key: "k", Name: "k", Handler: "work", Schedule: xxljob.FixedRate(time.Second)})
					stage.Must(t, err)
				}
				_, err := st.AddJob(t.Context(), xxljob.Job{App: "app", Key: "far", Name: "far", Handler: "work", Schedule: xxljob.Cron("* * * * * ?").In("Mars/Olympus"), Next: time.Now().Add(time.Second)}, nil)
				stage.Must(t, err)
				time.Sleep(2 * time.Minute)
				if n := len(stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StateSucceeded}})); n < 110 {
					t.Errorf("%d runs have succeeded within two minutes", n)
				}
				if n := len(log.With("of which release this node is")); n != 2 {
					t.Errorf("%d lines about releases: %s", n, log.With("level=ERROR"))
				}
				if n := len(log.With("which time zones this node lacks")); n == 0 || n > 2 {
					t.Errorf("%d lines about zones: %s", n, log.With("level=ERROR"))
				}
			})
		})
	}
}
