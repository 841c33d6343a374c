package otelxxl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// Observe records what happens at the node of the scheduler, and has its state asked for at
// each collection, until ctx ends or the scheduler stops. It returns at once, and may be called
// before Start. It is an error where an argument is nil, or the provider did not make the
// instruments; the scheduler is none the worse. A scheduler is observed once; several of a
// process are told apart by resources, each with a Telemetry of its own.
func (t *Telemetry) Observe(ctx context.Context, s xxljob.Scheduler) error {
	if ctx == nil || s == nil {
		return errors.New("otelxxl: Observe: the context or the scheduler is nil")
	}
	r, ok := ask(&t.calls.instruments, "Meter", func() (r registered) {
		var failed error
		note := func(name string, err error) { failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err)) }
		r.watch = newWatch(t, note)
		r.reg, r.err = t.observeState(s, note)
		if r.err = errors.Join(failed, r.err); r.err != nil {
			r.unregister()
		}
		return r
	}, func(late registered) {
		if late.err == nil {
			late.unregister()
		}
	})
	if !ok {
		return errors.New("otelxxl: Observe: the meter provider panicked, or did not answer")
	}
	if r.err != nil {
		return fmt.Errorf("otelxxl: Observe: %w", r.err)
	}
	events := s.Events(ctx)
	go func() {
		for e := range events {
			t.calls.events.tell("recording an event", func() { r.watch.record(&e) })
		}
		t.calls.instruments.end("Registration.Unregister", r.unregister)
	}()
	return nil
}

// registered is what Observe has made.
type registered struct {
	watch *watch
	reg   metric.Registration
	err   error
}

// unregister ends what is asked for at each collection.
func (r registered) unregister() {
	if r.reg != nil {
		_ = r.reg.Unregister()
	}
}

// watch records events.
type watch struct {
	t                  *Telemetry
	lateness, duration metric.Float64Histogram
	outcomes, stopped  metric.Float64Counter
	moves, away        metric.Float64Counter

	mu  sync.Mutex
	met map[string]bool // guarded by mu: the apps that have series
}

func newWatch(t *Telemetry, failed func(string, error)) *watch {
	w := &watch{
		t: t, met: map[string]bool{}, lateness: histogram(t.meter, failed, runLateness), duration: histogram(t.meter, failed, runDuration),
		outcomes: count(t.meter, failed, runOutcomes), stopped: count(t.meter, failed, jobsStopped),
		moves: count(t.meter, failed, shardMoves), away: count(t.meter, failed, storeAway),
	}
	// What may never happen is there from the start, so that its first time is an increase; what
	// apps there are is known later.
	for _, moved := range []string{"taken", "lost"} {
		w.moves.Add(context.Background(), 0, metric.WithAttributes(keyMoved.String(moved)))
	}
	w.away.Add(context.Background(), 0)
	for _, app := range t.apps.all() {
		w.meet(app)
	}
	return w
}

// meet makes the series of an app that may never happen, where there are none. The app is one of
// names.
func (w *watch) meet(app string) {
	w.mu.Lock()
	known := w.met[app]
	w.met[app] = true
	w.mu.Unlock()
	if !known {
		w.stopped.Add(context.Background(), 0, metric.WithAttributes(keyApp.String(app)))
	}
}

// types are those that are told apart.
var types = []xxljob.TriggerType{
	xxljob.TriggerManual, xxljob.TriggerCron, xxljob.TriggerRetry, xxljob.TriggerParent, xxljob.TriggerAPI,
	xxljob.TriggerMisfire, xxljob.TriggerFixRate, xxljob.TriggerFixDelay, xxljob.TriggerOnce,
}

// of are the attributes of a run, of few values, and more.
func (w *watch) of(r *xxljob.Run, more ...attribute.KeyValue) metric.MeasurementOption {
	kind := string(r.Type)
	if !slices.Contains(types, r.Type) {
		kind = other
	}
	app := w.t.apps.of(r.App)
	list := append(more, keyApp.String(app), keyType.String(kind))
	if w.t.cfg.JobKeys {
		key := r.JobKey
		if key == "" {
			key = fmt.Sprint(r.JobID)
		}
		list = append(list, keyJob.String(w.t.jobs.within(app, key)))
	}
	return metric.WithAttributes(list...)
}

func (w *watch) record(e *xxljob.Event) {
	ctx := context.Background()
	if e.Run != nil && !e.Here {
		return // the node that did it counts it
	}
	if e.Run != nil {
		w.meet(w.t.apps.of(e.Run.App))
	}
	switch e.Kind {
	case xxljob.EventRunStarted:
		w.lateness.Record(w.t.sent.context(e.Run), e.Run.Lateness().Seconds(), w.of(e.Run))
	case xxljob.EventRunEnded, xxljob.EventRunSkipped:
		ctx = w.t.sent.context(e.Run)
		state := keyState.String(e.Run.State.String())
		w.outcomes.Add(ctx, 1, w.of(e.Run, state))
		if took := e.Run.Ended.Sub(e.Run.Started); !e.Run.Started.IsZero() && took >= 0 {
			w.duration.Record(ctx, took.Seconds(), w.of(e.Run, state))
		}
	case xxljob.EventJobStopped:
		w.stopped.Add(ctx, 1, metric.WithAttributes(keyApp.String(w.t.apps.of(e.Job.App))))
	case xxljob.EventShardTaken:
		w.moves.Add(ctx, 1, metric.WithAttributes(keyMoved.String("taken")))
	case xxljob.EventShardLost:
		w.moves.Add(ctx, 1, metric.WithAttributes(keyMoved.String("lost")))
	case xxljob.EventStoreBack:
		w.away.Add(ctx, e.Away.Seconds())
	}
}

// state is what is asked for at each collection.
type state struct {
	t  *Telemetry
	of map[string]metric.Float64Observable
}

// observeState registers the callback. It is the provider's to call, so what it panics with
// there stays there.
func (t *Telemetry) observeState(s xxljob.Scheduler, failed func(string, error)) (metric.Registration, error) {
	m, st := t.meter, &state{of: map[string]metric.Float64Observable{}, t: t}
	var all []metric.Observable
	for _, sp := range observed() {
		var o metric.Float64Observable
		var err error
		if sp.Kind == Counter {
			o, err = m.Float64ObservableCounter(sp.Name, metric.WithUnit(sp.Unit), metric.WithDescription(sp.Text))
		} else {
			o, err = m.Float64ObservableGauge(sp.Name, metric.WithUnit(sp.Unit), metric.WithDescription(sp.Text))
		}
		if err != nil {
			failed(sp.Name, err)
			continue
		}
		st.of[sp.Name], all = o, append(all, o)
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.calls.instruments.try("metrics of Stats", func() { st.observe(o, s.Stats()) })
		return nil
	}, all...)
}

// lacks are what runs may wait for: see xxljob.Stats.
var lacks = []string{"place", "address", "app", "lane", "serial", "run", "order", "settle", "probe", "addresses", "router", "executor", "turn"}

func (st *state) observe(to metric.Observer, s xxljob.Stats) {
	say := func(sp spec, v float64, attributes ...attribute.KeyValue) {
		if o := st.of[sp.Name]; o != nil {
			to.ObserveFloat64(o, v, metric.WithAttributes(attributes...))
		}
	}
	say(runsHeld, float64(s.Held))
	say(runsDue, float64(s.Due))
	for _, lack := range lacks {
		say(runsWaiting, float64(s.Waiting[lack]), keyLack.String(lack))
	}
	running := map[string]int{}
	for app, n := range s.Running {
		running[st.t.apps.of(app)] += n
	}
	for _, app := range st.t.apps.all() {
		say(runsRunning, float64(running[app]), keyApp.String(app))
	}
	say(placesHeld, float64(s.PlacesHeld))
	say(runsCalling, float64(s.Calling))
	say(runsAway, float64(s.Away))
	for lane, l := range map[string]xxljob.LaneStats{"fast": s.Fast, "slow": s.Slow} {
		say(laneSize, float64(l.Size), keyLane.String(lane))
		say(laneUsed, float64(l.Used), keyLane.String(lane))
	}
	say(shardsOwned, float64(s.Shards))
	say(leaseLeft, s.LeaseLeft.Seconds())
	say(clockOffset, s.ClockOffset.Seconds())
	for _, cause := range store.TroubleCauses() { // zeros too, so that a rule sees it begin
		say(troublesOf, float64(s.Troubles[string(cause)]), keyTrouble.String(string(cause)))
	}
	st.observeFaults(say, &s.FaultStats)
	observeLogs(say, &s.Logs)
	for method, c := range s.Calls {
		of := keyMethod.String(method)
		say(storeCalls, float64(c.Calls), of)
		say(storeErrors, float64(c.Errors), of)
		say(storeTime, c.Total.Seconds(), of)
	}
}
