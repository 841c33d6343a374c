package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestNilsAreErrors: with words, and with nothing sent.
func TestNilsAreErrors(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	x := begin(t, pgx.ReadCommitted)
	var none context.Context
	var noTx *pgxpool.Tx
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"TriggerTx, tx":                 {func() error { _, err := s.TriggerTx(t.Context(), nil, job.ID, xxljob.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, nil within":         {func() error { _, err := s.TriggerTx(t.Context(), noTx, job.ID, xxljob.Trigger{}); return err }, "the transaction is nil"},
		"TriggerSQLTx, tx":              {func() error { _, err := s.TriggerSQLTx(t.Context(), nil, job.ID, xxljob.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, ctx":                {func() error { _, err := s.TriggerTx(none, x, job.ID, xxljob.Trigger{}); return err }, "the context is nil"},
		"Wake":                          {func() error { return s.Wake(none, job.ID) }, "the context is nil"},
		"New":                           {func() error { _, err := postgres.New(none, pgtest.SharedPool(t), postgres.Config{}); return err }, "the context is nil"},
		"Migrate":                       {func() error { return postgres.Migrate(none, pgtest.SharedPool(t), postgres.Config{}) }, "the context is nil"},
		"a read":                        {func() error { _, err := s.Job(none, job.ID); return err }, "the context is nil"},
		"a list":                        {func() error { _, err := s.Runs(none, xxljob.RunFilter{}); return err }, "the context is nil"},
		"a transaction of several":      {func() error { _, err := s.AddRun(none, job.ID, xxljob.Trigger{}); return err }, "the context is nil"},
		"a transaction of one":          {func() error { return s.EnsureGroup(none, "app") }, "the context is nil"},
		"a count that is known":         {func() error { return s.SetShards(none, 1) }, "the context is nil"},
		"a trigger that is bad as well": {func() error { _, err := s.TriggerTx(none, nil, job.ID, xxljob.Trigger{Key: "\x00"}); return err }, "the context is nil"},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, c.call(), c.want) })
	}
	_, err := s.TriggerTx(t.Context(), x, job.ID, xxljob.Trigger{}) // it can go on
	must(t, err)
	must(t, x.Commit(t.Context()))
}
