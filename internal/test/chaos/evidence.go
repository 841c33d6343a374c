//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// What there is to judge by when all is over. In: a cluster that nobody hits any more. Out:
// what the auditor takes; the nodes are stopped.

// settlePatience is how long runs that are due may take to end, when no fault is
// injected any more: the nodes that went last are judged within LostAfter, and an alarm that
// was turned away eight times in turn is tried again in two minutes.
const settlePatience = 150 * time.Second

// evidence stops the nodes and gathers what there is to judge by.
func (a *arena) evidence(ctx context.Context, end int64) (audit.Input, error) {
	if err := a.awaitEnded(ctx, end); err != nil {
		return audit.Input{}, err
	}
	var in audit.Input
	var rows []audit.Row
	var err error
	if a.primary() == nil { // the rows go with the process
		rows, err = a.rowsInMemory(ctx)
	}
	stopped := now()
	a.stopAll(ctx)
	in = a.journal.input()
	in.Stopped = stopped
	if a.primary() != nil {
		err = a.withDB(ctx, func(db *pgx.Conn) (err error) {
			rows, err = readRows(ctx, db, schema)
			miscounted, compared, recounted := recount(ctx, db, schema)
			in.Miscounted = miscounted
			a.note("reports: %d counts compared with the runs, %d differ", compared, len(miscounted))
			lines, logs := readLines(ctx, db, schema)
			in.Lines = lines
			return errors.Join(err, recounted, logs, readLed(ctx, db, schema, &in))
		})
	}
	if err != nil {
		return audit.Input{}, err
	}
	if a.lease == leaseRow {
		in.Rules = audit.RowRules()
	}
	in.Rows, in.Told = rows, append(a.hook.Told(), a.mails.Told()...)
	in.Rules.Sinks = []string{a.hook.Name(), a.mails.Name()}
	if a.own != nil {
		in.Rules.Sinks, in.Rules.SinkOf = append(in.Rules.Sinks, a.own.Name()), map[string]string{a.own.Name(): second}
		in.Told = append(in.Told, a.own.Told()...)
		a.note("%v", a.own)
	}
	if a.primary() == nil {
		in.Alarms = a.hook.Alarms()
	}
	a.note("%v, %v", a.hook, a.mails)
	in.Events, err = audit.ReadEvents(a.dir)
	if err == nil {
		in.Said, err = audit.ReadSaid(a.dir)
	}
	if err == nil {
		in.Choices, err = audit.ReadChoices(a.dir)
	}
	return in, err
}

// awaitEnded waits until everything due has ended, or for so long that the rest
// never will.
func (a *arena) awaitEnded(ctx context.Context, end int64) error {
	deadline := time.Now().Add(settlePatience)
	for {
		left, err := a.unfinished(ctx, end/1000)
		if err == nil && left == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// unfinished is how many runs due up to an instant have not ended.
func (a *arena) unfinished(ctx context.Context, upTo int64) (n int, err error) {
	if a.primary() != nil {
		err = a.withDB(ctx, func(db *pgx.Conn) (err error) {
			n, err = unfinished(ctx, db, schema, upTo)
			return err
		})
		return n, err
	}
	rows, err := a.rowsInMemory(ctx)
	for _, r := range rows {
		if r.State <= audit.Dispatched && (r.Due <= upTo || r.Last != 0 && r.Last <= upTo || r.Business != 0 && r.Business <= upTo) {
			n++
		}
	}
	if time.Since(time.UnixMilli(upTo)) < aftermath {
		n++
	}
	return n + toldOnce(a.hook.Told(), a.mails.Told()), err
}

// aftermath is for how long it is waited where nobody can say what is owed: longer than a
// window is open.
const aftermath = 10 * time.Second

// toldOnce is how many alarms one of the sinks has accepted and the other has not yet. One that
// was refused often comes again after a pause that is longer than all else.
func toldOnce(one, other []audit.Told) (n int) {
	by := map[int64]int{}
	for i, sink := range [][]audit.Told{one, other} {
		for _, t := range sink {
			if t.Message == "" {
				by[t.Alarm] |= 1 << i
			}
		}
	}
	for _, sinks := range by {
		if sinks != 3 {
			n++
		}
	}
	return n
}

// rowsInMemory are the rows of the only node.
func (a *arena) rowsInMemory(ctx context.Context) (rows []audit.Row, err error) {
	got, err := a.all()[0].ask(ctx, 10*time.Second, control.Request{Verb: control.Rows})
	if err == nil {
		err = got.Err()
	}
	if err == nil {
		err = json.Unmarshal(got.Rows, &rows)
	}
	return rows, err
}

// stopAll stops all nodes in good order.
func (a *arena) stopAll(ctx context.Context) {
	var g sync.WaitGroup
	for _, m := range a.all() {
		if !m.alive() {
			continue
		}
		g.Go(func() {
			f := audit.Fault{Name: "the end", Effect: audit.Leaves, Victim: m.process(), Begin: now()}
			_ = m.signal(syscall.SIGTERM)
			if err := m.awaitEnd(ctx, 30*time.Second); err != nil {
				a.note("%v", err)
			}
			f.End = now()
			a.journal.fault(f)
		})
	}
	g.Wait()
}
