package otelxxl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/xxljobtest"
)

// observed is a scheduler whose metrics are recorded.
func observed(t *testing.T, p *process, cfg xxljob.Config, handlers map[string]xxljob.Handler, jobs ...xxljob.Job) *xxljobtest.Scheduler {
	t.Helper()
	cfg.App, cfg.Logger = "shop", quiet()
	s := xxljobtest.NewWith(t, xxljobtest.Options{Config: p.Configure(cfg), Handlers: handlers}, jobs...)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	must(t, p.Observe(ctx, s))
	return s
}

var mails = map[string]xxljob.Handler{
	"mail": func(context.Context, *xxljob.Task) error { time.Sleep(3 * time.Second); return nil },
	"fail": func(context.Context, *xxljob.Task) error { return errors.New("boom") },
}

// TestMetricsOfRuns: outcomes, lateness and durations are counted by app, type and state, with
// exemplars of the traces that the runs were in.
func TestMetricsOfRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		s := observed(t, p, xxljob.Config{Alarms: p.Alarms([]alarm.Rule{{Name: "all", To: nobody{}}})}, mails,
			xxljob.Job{Name: "mails", Key: "mails", Handler: "mail", Schedule: xxljob.FixedRate(time.Minute)},
			xxljob.Job{Name: "fail", Key: "fail", Handler: "fail"})
		for range 3 {
			_, err := s.TriggerJob(t.Context(), "", "fail", xxljob.Trigger{})
			must(t, err)
		}
		time.Sleep(10*time.Minute + 10*time.Second)
		outcomes := p.points(t, "xxljob.run.outcomes")
		fixed, manual := "xxljob.trigger.type=FIX_RATE", "xxljob.trigger.type=MANUAL"
		for _, tt := range []struct {
			name string
			want float64
			with []string
		}{
			{"xxljob.run.outcomes", 10, []string{"xxljob.app=shop", fixed, "xxljob.run.state=succeeded"}},
			{"xxljob.run.outcomes", 3, []string{"xxljob.app=shop", manual, "xxljob.run.state=failed"}},
			{"xxljob.run.duration", 10, []string{"xxljob.app=shop", fixed, "xxljob.run.state=succeeded"}},
			{"xxljob.run.lateness", 10, []string{"xxljob.app=shop", fixed}},
			{"messaging.process.duration", 13, []string{"messaging.destination.name=shop", "messaging.operation.name=process", "messaging.system=xxljob"}},
			{"messaging.process.duration", 3, []string{"error.type=error"}},
			{"xxljob.alarm.calls", 1, []string{"xxljob.alarm.rule=all", "xxljob.alarm.cause=failed"}}, // the others come in the next message
		} {
			if got := with(p.points(t, tt.name), tt.with...); got < tt.want || tt.name != "xxljob.alarm.calls" && got != tt.want {
				t.Errorf("%s with %v is %v, want %v: %v", tt.name, tt.with, got, tt.want, p.points(t, tt.name))
			}
		}
		for key := range outcomes {
			if strings.Contains(key, "xxljob.job.key") {
				t.Errorf("outcomes have the attributes %s: jobs only where they are asked for", key)
			}
		}
		traces := map[string]bool{}
		for _, span := range p.named("dispatch shop") {
			traces[span.SpanContext.TraceID().String()] = true
		}
		for _, name := range []string{"xxljob.run.duration", "xxljob.run.lateness", "messaging.process.duration"} {
			n := 0
			each(t, p.collect(t, name), func(_ attribute.Set, _ float64, exemplars []metricdata.Exemplar[float64]) {
				for _, e := range exemplars {
					if n++; !traces[fmt.Sprintf("%x", e.TraceID)] {
						t.Errorf("%s: an exemplar of trace %x, which no run is in", name, e.TraceID)
					}
				}
			})
			if n == 0 {
				t.Errorf("%s has no exemplars", name)
			}
		}
	})
}

// TestMetricsOfState: what Stats says is what is observed.
func TestMetricsOfState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		s, err := xxljob.New(memory.New(), p.Configure(xxljob.Config{App: "shop", Logger: quiet()}))
		must(t, err)
		must(t, s.Handle("mail", mails["mail"]))
		must(t, p.Observe(t.Context(), s))
		must(t, s.Start(t.Context()))
		defer func() { must(t, s.Stop(context.Background())) }()
		_, err = s.AddJob(t.Context(), xxljob.Job{Name: "mails", Key: "mails", Handler: "mail"})
		must(t, err)
		time.Sleep(time.Minute)
		_, err = s.TriggerJob(t.Context(), "", "mails", xxljob.Trigger{})
		must(t, err)
		time.Sleep(time.Second)
		stats := s.Stats()
		for _, tt := range []struct {
			name string
			want float64
			with []string
		}{
			{"xxljob.runs.running", 1, []string{"xxljob.app=shop"}},
			{"xxljob.runs.held", float64(stats.Held), nil},
			{"xxljob.runs.waiting", 0, []string{"xxljob.lack=place"}},
			{"xxljob.lane.size", 200, []string{"xxljob.lane=fast"}},
			{"xxljob.lane.size", 100, []string{"xxljob.lane=slow"}},
			{"xxljob.shards", 32, nil},
			{"xxljob.shard.moves", 32, []string{"xxljob.shard.moved=taken"}},
			{"xxljob.store.calls", float64(stats.Calls["AddRun"].Calls), []string{"xxljob.store.method=AddRun"}},
			{"xxljob.faults", 0, nil},
		} {
			if got := with(p.points(t, tt.name), tt.with...); got != tt.want {
				t.Errorf("%s with %v is %v, want %v", tt.name, tt.with, got, tt.want)
			}
		}
	})
}

// TestInstruments: what is recorded is what Instruments says, with these attributes.
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, func(c *otelxxl.Config) { c.JobKeys = true })
		s := observed(t, p, xxljob.Config{Alarms: p.Alarms([]alarm.Rule{{Name: "all", To: nobody{}}})}, mails,
			xxljob.Job{Name: "mails", Key: "mails", Handler: "mail", Schedule: xxljob.FixedRate(time.Minute)},
			xxljob.Job{Name: "fail", Key: "fail", Handler: "fail", Schedule: xxljob.FixedRate(time.Minute)})
		time.Sleep(5 * time.Minute)
		job, err := s.Store.JobByKey(t.Context(), "shop", "mails")
		must(t, err)
		must(t, s.StopJob(t.Context(), job.ID))
		time.Sleep(5 * time.Minute)
		seen := map[string]bool{}
		var all metricdata.ResourceMetrics
		must(t, p.reader.Collect(t.Context(), &all))
		declared := map[string]otelxxl.Instrument{}
		for _, i := range otelxxl.Instruments() {
			declared[i.Name] = i
		}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				i, known := declared[m.Name]
				if seen[m.Name] = true; !known || m.Unit != i.Unit || m.Description != i.Text {
					t.Errorf("%s, in %s: %q is not as it is declared: %+v", m.Name, m.Unit, m.Description, i)
				}
				each(t, m.Data, func(set attribute.Set, _ float64, _ []metricdata.Exemplar[float64]) {
					for _, kv := range set.ToSlice() {
						if !slices.Contains(i.Attributes, string(kv.Key)) {
							t.Errorf("%s has the attribute %s, which is not declared", m.Name, kv.Key)
						}
					}
				})
			}
		}
		for name := range declared {
			if !seen[name] {
				t.Errorf("%s was not recorded", name)
			}
		}
	})
}

// TestCardinalityIsBounded: however many apps and jobs there are, there are so many values, also
// of jobs whose keys other apps have too; and with the limit of the SDK that the docs name, all
// that differs in type and state is told apart.
func TestCardinalityIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, st := newProcess(t, func(c *otelxxl.Config) { c.JobKeys = true }), memory.New()
		s := xxljobtest.NewWith(t, xxljobtest.Options{Store: st, Config: p.Configure(xxljob.Config{App: "shop", Logger: quiet()}), Handlers: mails})
		must(t, p.Observe(t.Context(), s))
		want, jobs := map[string]float64{}, map[string]bool{}
		const mostApps, mostJobs = 200, 1000
		for i := range 1800 {
			n := i % 300
			app, key := fmt.Sprint("app-", n), fmt.Sprint("k", i/300) // six keys, each in many apps
			job := xxljob.Job{App: app, Name: "mails", Key: key, Handler: "nobody's", Block: xxljob.BlockConcurrent}
			state := "refused"
			if n == 0 {
				job.App, app, job.Handler, state = "shop", "shop", "mail", "succeeded"
				if i >= 300 {
					job.Handler, state = "fail", "failed"
				}
			}
			job, err := s.AddJob(t.Context(), job)
			must(t, err)
			if n >= mostApps {
				app = "other"
			}
			if of := app + "/" + key; !jobs[of] && len(jobs) >= mostJobs {
				key = "other"
			} else {
				jobs[of] = true
			}
			for _, kind := range []xxljob.TriggerType{xxljob.TriggerManual, xxljob.TriggerAPI} {
				_, err = s.Trigger(t.Context(), job.ID, xxljob.Trigger{Type: kind})
				must(t, err)
				want[fmt.Sprint(app, " ", key, " ", kind, " ", state)]++
			}
			time.Sleep(time.Second) // in this order
		}
		time.Sleep(time.Minute)
		got := map[string]float64{}
		each(t, p.collect(t, "xxljob.run.outcomes"), func(set attribute.Set, v float64, _ []metricdata.Exemplar[float64]) {
			var texts []string
			for _, key := range []attribute.Key{"xxljob.app", "xxljob.job.key", "xxljob.trigger.type", "xxljob.run.state"} {
				of, _ := set.Value(key)
				texts = append(texts, of.String())
			}
			got[strings.Join(texts, " ")] += v
		})
		if !maps.Equal(got, want) || len(want) < 2000 {
			t.Errorf("%d series, want these %d, and more than an SDK keeps by default", len(got), len(want))
		}
	})
}

// TestObserveNothing: bad arguments are errors.
func TestObserveNothing(t *testing.T) {
	p := newProcess(t)
	var none context.Context
	if p.Observe(none, xxljobtest.New(t)) == nil || p.Observe(t.Context(), nil) == nil {
		t.Error("no error")
	}
}

// TestTheFirstTimeIsAnIncrease: alarms, and jobs that stop, have series before anything happens,
// so that what a dashboard shows is not blind for the first of them.
func TestTheFirstTimeIsAnIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		rules := p.Alarms([]alarm.Rule{{Name: "all", To: nobody{}}, {Name: "some", To: nobody{}, Causes: []alarm.Cause{alarm.Attempt}}, {Name: "none"}})
		s := observed(t, p, xxljob.Config{Alarms: rules[:2]}, mails)
		before := func(name string, texts ...string) {
			t.Helper()
			points := p.points(t, name)
			for key, v := range points {
				if v == 0 && with(map[string]float64{key: 1}, texts...) == 1 {
					return
				}
			}
			t.Errorf("%s with %v is not there before it happens: %v", name, texts, points)
		}
		for _, cause := range []string{"failed", "lost", "skipped", "stopped", "late", "trouble"} {
			before("xxljob.alarm.calls", "xxljob.alarm.rule=all", "xxljob.alarm.cause="+cause)
			before("xxljob.alarm.calls", "xxljob.alarm.rule=all", "xxljob.alarm.cause="+cause, "error.type=error")
			before("xxljob.alarm.calls", "xxljob.alarm.rule=all", "xxljob.alarm.cause="+cause, "error.type=timeout")
		}
		before("xxljob.alarm.calls", "xxljob.alarm.rule=some", "xxljob.alarm.cause=attempt")
		if n := len(p.points(t, "xxljob.alarm.calls")); n != 21 {
			t.Errorf("%d series of alarms, want 21", n)
		}
		before("xxljob.job.stopped", "xxljob.app=shop")
		job, err := s.AddJob(t.Context(), xxljob.Job{App: "elsewhere", Name: "mails", Handler: "nobody's", Schedule: xxljob.FixedRate(time.Hour)})
		must(t, err)
		_, err = s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
		must(t, err)
		time.Sleep(time.Minute)
		before("xxljob.job.stopped", "xxljob.app=elsewhere")
		must(t, s.StopJob(t.Context(), job.ID))
		time.Sleep(time.Second)
		if got := with(p.points(t, "xxljob.job.stopped"), "xxljob.app=elsewhere"); got != 1 {
			t.Errorf("%v jobs have stopped, want 1", got)
		}
	})
}
