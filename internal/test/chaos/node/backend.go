//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
	"github.com/xxljob/xxljob/store/memory"
)

// backend is the store, and what only its kind can do.
type backend struct {
	store     xxljob.Store
	triggerTx func(context.Context, control.Request) (control.Answer, error)
	hold      func(context.Context, time.Duration) error
	rows      func(context.Context) ([]audit.Row, error)
	close     func()
}

func openBackend(ctx context.Context, o options) (backend, error) {
	switch o.store {
	case "memory":
		return openMemory(), nil
	case "postgres":
		return openPostgres(ctx, o)
	}
	return backend{}, fmt.Errorf("unknown store %q", o.store)
}

// openMemory serves the development of the test itself: a single process.
func openMemory() backend {
	st := memory.New(memory.RetainBytes(1 << 30)) // the audit reads them all
	return backend{
		store: st,
		triggerTx: func(ctx context.Context, r control.Request) (control.Answer, error) {
			if !r.Commit {
				return control.Answer{Refused: true}, nil
			}
			run, err := st.AddRun(ctx, r.ID, xxljob.Trigger{Param: &r.Param})
			return control.Answer{Run: run.ID}, err
		},
		rows: func(ctx context.Context) ([]audit.Row, error) {
			var rows []audit.Row
			for before := int64(0); ; {
				page, err := st.Runs(ctx, xxljob.RunFilter{Before: before, Limit: 1000})
				if err != nil || len(page) == 0 {
					return rows, err
				}
				for _, r := range page {
					rows = append(rows, row(r))
				}
				before = page[len(page)-1].ID
			}
		},
		hold:  func(context.Context, time.Duration) error { return errors.New("there is no pool") },
		close: func() {},
	}
}

func row(r xxljob.Run) audit.Row {
	a := audit.Row{
		Run: r.ID, Job: r.JobID, State: int(r.State), Type: string(r.Type), Due: r.Scheduled.UnixMilli(), Index: r.Sharding.Index, Total: r.Sharding.Total,
		Count: r.Count, Reason: r.Reason, Owner: r.Owner, Address: r.Address,
		Trigger: cmp.Or(r.TriggerID, r.ID), Attempt: r.Attempt, Reruns: r.Reruns, Snoozes: r.Snoozes, NoRetry: r.NoRetry, Snoozed: r.State == xxljob.StateSnoozed,
		Parent: r.ParentID, Depth: r.Depth, Doomed: r.KillReason != "",
	}
	if a.Snoozed {
		a.State = audit.Succeeded
	}
	if !r.First.IsZero() {
		a.First, a.Last = r.First.UnixMilli(), r.Last.UnixMilli()
	}
	if !r.Business.IsZero() {
		a.Business = r.Business.UnixMilli()
	}
	if !r.StandsFor.IsZero() {
		a.StandsFor = r.StandsFor.UnixMilli()
	}
	if r.State == xxljob.StateSkipped || r.State == xxljob.StateRefused {
		a.Message = r.TriggerMsg
	}
	if !r.Started.IsZero() {
		a.Started = r.Started.UnixMilli()
	}
	if !r.Ended.IsZero() {
		a.Ended = r.Ended.UnixMilli()
	}
	return a
}
