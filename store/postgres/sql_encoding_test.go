package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// inEncoding makes a database in another encoding than UTF-8, and stores on it, each in a schema that
// no other has at the time.
func inEncoding(t *testing.T, encoding string) (open func(t *testing.T, opts ...pgtest.Option) *postgres.Store) {
	t.Helper()
	if _, ok := pgtest.SuperDSN(t); !ok {
		pgtest.Skip(t, "databases are made on a cluster of our own only: unset XXLJOB_TEST_DATABASE_URL")
	}
	opts := []pgtest.Option{pgtest.At(pgtest.Database(t, "C/"+encoding)), with(map[string]string{"client_encoding": "UTF8"})}
	there := &schemas{pool: pgtest.Pool(t, opts...)}
	return func(t *testing.T, more ...pgtest.Option) *postgres.Store {
		return there.open(t, pgtest.Pool(t, slices.Concat(opts, more)...), postgres.Patient(postgres.Config{}))
	}
}

// latin is a store on a database in LATIN1.
type latin struct{ *postgres.Store }

// KeptText implements storetest.Narrow.
func (latin) KeptText(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xff {
			return '?'
		}
		return r
	}, text)
}

// TestTextsInLatin: all that a running program says is stored where the database cannot hold it.
func TestTextsInLatin(t *testing.T) {
	t.Parallel()
	inServer(t)
	open := inEncoding(t, "LATIN1")
	only := cases(t, map[string][]string{"Texts": nil, "Troubles": {"TextsAreMadeValid"}})
	storetest.Run(t, func(t *testing.T) store.Store {
		only(t)
		return latin{open(t)}
	})
}

// TestNamesInLatin: what is asked for by name, or handed to code, is refused in words and changed
// nowhere; what the encoding has is kept.
func TestNamesInLatin(t *testing.T) {
	t.Parallel()
	inServer(t)
	s := inEncoding(t, "LATIN1")(t)
	ctx := t.Context()
	if err := s.SetShards(ctx, 4); err != nil {
		t.Fatal(err)
	}
	job, err := s.AddJob(ctx, store.Job{App: "café", Key: "clé", Name: "à midi", Handler: "h", Param: "crème"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.JobByKey(ctx, "café", "clé"); err != nil || got.ID != job.ID || got.Param != "crème" {
		t.Errorf("the job is %+v, error %v", got, err)
	}
	param := "漢"
	for what, call := range map[string]func() error{
		"a key": func() error {
			_, err := s.AddJob(ctx, store.Job{App: "a", Key: "漢", Name: "n", Handler: "h"}, nil)
			return err
		},
		"a name": func() error {
			_, err := s.AddJob(ctx, store.Job{App: "a", Key: "k", Name: "漢", Handler: "h"}, nil)
			return err
		},
		"a parameter": func() error {
			_, err := s.AddJob(ctx, store.Job{App: "a", Key: "p", Name: "n", Handler: "h", Param: "漢"}, nil)
			return err
		},
		"an edit": func() error {
			_, err := s.EditJob(ctx, job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Param = "漢"; return false, nil }})
			return err
		},
		"a lookup":        func() error { _, err := s.JobByKey(ctx, "café", "漢"); return err },
		"a group":         func() error { return s.SaveGroup(ctx, store.Group{App: "漢", Title: "t"}) },
		"a trigger":       func() error { _, err := s.AddRun(ctx, job.ID, store.Trigger{Param: &param}); return err },
		"a trigger's key": func() error { _, err := s.AddRun(ctx, job.ID, store.Trigger{Key: "漢"}); return err },
		"a rule of alarms": func() error {
			_, err := s.KeepRules(ctx, store.RuleKeeper{App: "a", Node: "n", Incarnation: "n-1", Rules: []store.AlarmRule{{Key: "k", Name: "r", Apps: []string{"漢"}}}})
			return err
		},
		"a registration": func() error { return s.PutAddresses(ctx, []store.Registration{{App: "漢", Address: "http://a"}}) },
	} {
		err := call()
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s: %v, want that it is refused", what, err)
			continue
		}
		wantText(t, err, "the encoding of the database lacks a character", "LATIN1")
	}
	if got, err := s.Job(ctx, job.ID); err != nil || got.Param != "crème" || got.Version != job.Version {
		t.Errorf("then the job is %+v, error %v", got, err)
	}
}

// TestTextsInEveryEncoding: the server is asked what it has, whatever its encoding; in a transaction
// too, and by the simple protocol.
func TestTextsInEveryEncoding(t *testing.T) {
	t.Parallel()
	inServer(t)
	const text = "é 漢字 Ж ð 가 あ € \uFFFD 𝄞 \u0085"
	for encoding, kept := range map[string]string{
		"LATIN1": "é ?? ? ð ? ? ? ? ? \u0085", "EUC_CN": "é ?字 Ж ? ? あ ? ? ? ?", "EUC_KR": "? 漢字 Ж ð 가 あ € ? ? ?",
		"WIN1252": "é ?? ? ð ? ? € ? ? ?", "KOI8R": "? ?? Ж ? ? ? ? ? ? ?", "EUC_JP": "é 漢字 Ж ð ? あ ? ? ? ?",
	} {
		t.Run(encoding, func(t *testing.T) {
			open := inEncoding(t, encoding)
			for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
				t.Run(mode.String(), func(t *testing.T) { // in one schema after the other's
					s := open(t, by(mode))
					must(t, s.SetShards(t.Context(), 4))
					job, err := s.AddJob(t.Context(), store.Job{App: "a", Key: "k", Name: "n", Handler: "h"}, nil)
					must(t, err)
					for range 2 { // and what is known is not asked again
						run, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
						must(t, err)
						got, err := s.Kill(t.Context(), run.ID, text)
						if err != nil || got.Reason != kept {
							t.Errorf("%q is kept, error %v, want %q", got.Reason, err, kept)
						}
					}
				})
			}
		})
	}
}
