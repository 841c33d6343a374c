//go:build unix

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Jobs that lead to others by their successes: to several, one after the other, by a broadcast,
// and jobs that run behind two. Their handlers fail as those of other chains do.

// app is that of the jobs which name none.
const app = "chaos"

// keyOf is how other jobs may name one.
func keyOf(d control.Job) string {
	if d.App != "" {
		return d.App + "/" + d.Name
	}
	return app + "/" + d.Name
}

// addFamily adds the jobs. Two of them are due at the period, which is a part of a minute,
// and the given number of joins runs behind both. One comes before the two, so that no
// success is missed by it.
func (a *arena) addFamily(ctx context.Context, period int64, joins int) error {
	add := func(d control.Job) (id int64, err error) { return a.ensure(ctx, nil, d, false) }
	retried := func(d control.Job) control.Job {
		d.Retries, d.Pause, d.Rerun = 1, 300, true
		return d
	}
	const first, second = "first of two", "second of two"
	after := func(n int) control.Job {
		return control.Job{Name: fmt.Sprintf("behind two %d", n), Route: "ROUND", Window: period, AfterTimeout: min(period, 3000)}
	}
	early := after(0)
	early.AfterKeys = []string{app + "/" + first, app + "/" + second}
	if _, err := add(early); err != nil {
		return err
	}
	var ids []int64
	for _, d := range []control.Job{
		{Name: "child", Route: "NEAREST"},
		{Name: "child that takes", Route: "ROUND", Param: "takes=300"},
		{Name: "child by key", Route: "FIRST"},
		{Name: "third of three", Route: "ROUND"},
	} {
		id, err := add(d)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	middle, err := add(retried(control.Job{Name: "second of three", Route: "NEAREST", Param: control.Chain + " middle fo", Children: ids[3:]}))
	if err != nil {
		return err
	}
	for _, d := range parents(ids, middle) {
		id, err := add(d)
		if err != nil {
			return err
		}
		a.chained = append(a.chained, chained{id, d})
	}
	one, err := add(retried(control.Job{Name: first, Kind: control.Cron, Period: period, Route: "ROUND", Param: control.Chain + " one o", Children: ids[:1]}))
	if err != nil {
		return err
	}
	two, err := add(retried(control.Job{Name: second, Kind: control.Cron, Period: period, Route: "NEAREST", Param: control.Chain + " two ii"}))
	if err != nil {
		return err
	}
	for n := range joins - 1 {
		d := after(n + 1)
		if d.After = []int64{one, two}; n%2 == 0 {
			d.After, d.AfterKeys = []int64{one}, []string{app + "/" + second}
		}
		if _, err := add(d); err != nil {
			return err
		}
	}
	_, err = add(control.Job{Name: "late", Kind: control.Cron, Period: 10_000, Route: "NEAREST", Param: "takes=7500", LateAfter: 1000})
	return err
}

// parents are triggered with scripts.
func parents(ids []int64, middle int64) []control.Job {
	parent := func(name, route string, children ...int64) control.Job {
		return control.Job{Name: name, Route: route, Retries: 2, Pause: 200, MostPause: 600, Rerun: true, Timeout: 1000, Children: children}
	}
	fan := parent("parent of three", "ROUND", ids[0], ids[1], ids[0]) // who is named twice has one
	fan.ChildKeys = []string{app + "/child by key"}
	return []control.Job{fan, parent("first of three", "FAILOVER", middle), parent("parent by broadcast", "SHARDING_BROADCAST", ids[1])}
}

// families is a workload of little but jobs that lead to others. In each shard there is one
// that may be late, though it never is, so that every node looks for such runs.
func (a *arena) families(ctx context.Context) (wait func(), err error) {
	if err := a.addFamily(ctx, 2000, 8); err != nil {
		return nil, err
	}
	for i := range shards {
		if _, err := a.ensure(ctx, nil, control.Job{Name: fmt.Sprintf("never late %d", i), Route: "NEAREST", LateAfter: 10_000}, false); err != nil {
			return nil, err
		}
	}
	var g sync.WaitGroup
	g.Go(func() { a.chains(ctx, 500*time.Millisecond) })
	return g.Wait, nil
}
