package postgres_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
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
		"TriggerTx, tx":                 {func() error { _, err := s.TriggerTx(t.Context(), nil, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, nil within":         {func() error { _, err := s.TriggerTx(t.Context(), noTx, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerSQLTx, tx":              {func() error { _, err := s.TriggerSQLTx(t.Context(), nil, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, ctx":                {func() error { _, err := s.TriggerTx(none, x, job.ID, store.Trigger{}); return err }, "the context is nil"},
		"Wake":                          {func() error { return s.Wake(none, job.ID) }, "the context is nil"},
		"New":                           {func() error { _, err := postgres.New(none, pgtest.SharedPool(t), postgres.Config{}); return err }, "the context is nil"},
		"Migrate":                       {func() error { return postgres.Migrate(none, pgtest.SharedPool(t), postgres.Config{}) }, "the context is nil"},
		"a read":                        {func() error { _, err := s.Job(none, job.ID); return err }, "the context is nil"},
		"a list":                        {func() error { _, err := s.Runs(none, store.RunFilter{}); return err }, "the context is nil"},
		"a transaction of several":      {func() error { _, err := s.AddRun(none, job.ID, store.Trigger{}); return err }, "the context is nil"},
		"a transaction of one":          {func() error { return s.EnsureGroup(none, "app") }, "the context is nil"},
		"a count that is known":         {func() error { return s.SetShards(none, 1) }, "the context is nil"},
		"a trigger that is bad as well": {func() error { _, err := s.TriggerTx(none, nil, job.ID, store.Trigger{Key: "\x00"}); return err }, "the context is nil"},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, c.call(), c.want) })
	}
	_, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{}) // it can go on
	must(t, err)
	must(t, x.Commit(t.Context()))
}

// TestNilContexts: every method that takes a ctx says what is wrong with a nil one, with
// nothing else to do as well.
func TestNilContexts(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		store := reflect.ValueOf(open(t, postgres.Config{LeaseMode: mode}))
		for i := range store.NumMethod() {
			m := store.Method(i)
			if of := m.Type(); of.NumIn() == 0 || of.In(0) != reflect.TypeFor[context.Context]() || of.NumOut() == 0 || of.Out(of.NumOut()-1) != reflect.TypeFor[error]() {
				continue
			}
			t.Run(string(mode)+", "+store.Type().Method(i).Name, func(t *testing.T) {
				args := make([]reflect.Value, m.Type().NumIn())
				for i := range args {
					args[i] = reflect.Zero(m.Type().In(i))
				}
				call := m.Call
				if m.Type().IsVariadic() {
					call = m.CallSlice
				}
				defer func() {
					if v := recover(); v != nil {
						t.Errorf("panic: %v", v)
					}
				}()
				out := call(args)
				if err, _ := out[len(out)-1].Interface().(error); err == nil || !strings.Contains(err.Error(), "the context is nil") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
