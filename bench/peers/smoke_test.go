package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// TestMain is the program where a round starts it again for a contestant.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		if err := childMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	os.Exit(m.Run())
}

// small is a comparison of few units, which says nothing of any speed.
func small() *bench {
	return &bench{
		config:   config{Rounds: 1, Units: 300, Jobs: 20, Conns: 4, For: time.Second},
		pace:     pace{lead: 500 * time.Millisecond, grace: 100 * time.Millisecond},
		out:      io.Discard,
		progress: io.Discard,
	}
}

// TestRoundsOnPostgres goes through a round of each kind, whose audit has to be clean.
func TestRoundsOnPostgres(t *testing.T) {
	t.Parallel()
	options := serverOptions()
	options.NoFsync = true
	options.Settings["plan_cache_mode"], options.Settings["autovacuum"], options.Settings["jit"] = "force_generic_plan", "off", "off" // processes live for seconds
	cluster := pgtest.Start(t, options)
	b := small()
	var err error
	if b.server, err = newServer(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.server.pool.Close)
	each := time.Second
	for name, round := range map[string]func(context.Context) (sample, error){
		"drain, two of ours":    func(ctx context.Context) (sample, error) { return b.drain(ctx, ours, 2) },
		"drain, two of River's": func(ctx context.Context) (sample, error) { return b.drain(ctx, riverName, 2) },
		"scheduled, ours": func(ctx context.Context) (sample, error) {
			return b.scheduled(ctx, plan{jobs: 20, every: each})
		},
		"scheduled, River": func(ctx context.Context) (sample, error) {
			return b.scheduledRiver(ctx, plan{jobs: 20, every: each})
		},
		"herd": func(ctx context.Context) (sample, error) {
			return b.scheduled(ctx, plan{jobs: 20, every: each, herd: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := round(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			drain := strings.HasPrefix(name, "drain")
			if drain == s.Scheduled {
				t.Errorf("the round gives %+v", s)
			}
			// What is due may be called behind the end of so short a time.
			if _, ok := s.WAL.Value(); drain && (!ok || s.Rate <= 0) {
				t.Errorf("the round gives %+v", s)
			}
		})
	}
}

// TestRoundsInMemory does the same for those without a database.
func TestRoundsInMemory(t *testing.T) {
	t.Parallel()
	b := small()
	for _, who := range []string{ours, gocronName, robfigName, quartzName} {
		t.Run("herd, "+who, func(t *testing.T) {
			t.Parallel()
			s, err := b.inMemory(t.Context(), who, 20, false)
			if err != nil {
				t.Fatal(err)
			}
			if s.Offered != 20 {
				t.Errorf("the round gives %+v", s)
			}
		})
	}
	t.Run("spread", func(t *testing.T) {
		t.Parallel()
		if _, err := b.inMemory(t.Context(), ours, 20, true); err != nil {
			t.Error(err)
		}
	})
	t.Run("drain", func(t *testing.T) {
		t.Parallel()
		if s, err := b.drainInMemory(t.Context()); err != nil || s.Rate <= 0 {
			t.Error(s, err)
		}
	})
}

// TestAnUnknownContestant: what a process cannot do comes back as an error.
func TestAnUnknownContestant(t *testing.T) {
	t.Parallel()
	if _, err := startChild(t.Context(), task{Who: "nobody"}); err == nil || !strings.Contains(err.Error(), `no contestant "nobody"`) {
		t.Error(err)
	}
}
