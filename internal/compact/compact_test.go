package compact

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// TestWhatIsHeldOfARun: a node knows all of a run that it holds, whatever is in it, and takes the
// few words of the usual one for that.
func TestWhatIsHeldOfARun(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, int(7*time.Millisecond), time.UTC)
	planned := store.Run{ID: 7, JobID: 3, App: "app", Shard: 5, TriggerID: 7, Type: store.TriggerCron, Born: true, Scheduled: at, Created: at.Add(-time.Second), Retries: -1, PlanEpoch: 4}
	job := &store.Job{Version: 9, Handler: "work", Block: "SERIAL_EXECUTION", Param: "p", Retries: 2}
	started := planned
	started.State, started.Started, started.Taken, started.TriggerMsg = store.StateStarted, at, at, "route"
	started.Token, started.Address, started.Owner, started.BootID = 11, "local://n", "n", "b"
	started.JobVersion, started.Handler, started.Block, started.Param, started.Retries = 9, "work", "SERIAL_EXECUTION", "p", 2

	triggered := planned
	triggered.Type, triggered.Born, triggered.PlanEpoch = store.TriggerAPI, false, 0

	asPlanned := func(r *store.Run) (store.Run, bool) {
		p := PlannedOf(r)
		return p.Run(), p.Rest == nil
	}
	asStarted := func(r *store.Run) (got store.Run, brief bool) {
		s := StartedOf(r, job, Shared{})
		s.Fill(&got, job)
		return got, s.Planned.Rest == nil
	}
	for _, c := range []struct {
		name string
		run  store.Run
		held func(*store.Run) (store.Run, bool)
	}{{"planned", planned, asPlanned}, {"started", started, asStarted}, {"triggered", triggered, asPlanned}} {
		if got, brief := c.held(&c.run); !brief || !reflect.DeepEqual(got, c.run) {
			t.Errorf("the usual %s run is held briefly: %t, as %+v, want %+v", c.name, brief, got, c.run)
		}
		for i := range reflect.TypeFor[store.Run]().NumField() {
			for _, other := range []store.Run{otherwise(c.run, i, false), otherwise(c.run, i, true)} {
				if got, _ := c.held(&other); !reflect.DeepEqual(got, other) {
					t.Errorf("a %s run with another %s is held as\n%+v, want\n%+v", c.name, reflect.TypeFor[store.Run]().Field(i).Name, got, other)
				}
			}
		}
	}
}

// otherwise is a run with another value in its i-th field: the zero value, or one that is neither.
func otherwise(r store.Run, i int, zero bool) store.Run {
	f := reflect.ValueOf(&r).Elem().Field(i)
	switch v := f.Addr().Interface().(type) {
	case *time.Time:
		*v = time.Date(2025, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600)) // not as stores have them
	case *[]string:
		*v = []string{"x"}
	case *bool:
		*v = !*v
	case *store.Sharding:
		*v = store.Sharding{Index: 1, Total: 3}
	default:
		switch {
		case f.CanInt():
			f.SetInt(f.Int() + 1)
		case f.CanUint():
			f.SetUint(f.Uint() + 1)
		default:
			f.SetString(f.String() + "x")
		}
	}
	if zero {
		f.SetZero()
	}
	return r
}

// TestStartedLately: runs at one address share what they have in common, however many addresses
// take turns; those that differ have their own, and what is shared does not change.
func TestStartedLately(t *testing.T) {
	lately := Shared{}
	run := func(i int, msg string) *store.Run {
		return &store.Run{Address: fmt.Sprintf("http://10.0.0.%d:9999", i), Owner: "n-1", BootID: "b", TriggerMsg: msg}
	}
	const addresses = 20
	var first [addresses]*startedWith
	for i := range addresses {
		first[i] = lately.of(run(i, "one"))
	}
	for i := range addresses {
		if lately.of(run(i, "one")) != first[i] {
			t.Fatalf("address %d has one of its own again", i)
		}
		if other := lately.of(run(i, "two")); other == first[i] || other.msg != "two" || first[i].msg != "one" {
			t.Fatalf("address %d has %+v, and had %+v", i, other, first[i])
		}
	}
	for i := range 3 * mostLately {
		if lately.of(run(i, "one")); len(lately) > mostLately {
			t.Fatalf("%d addresses are remembered", len(lately))
		}
	}
}
