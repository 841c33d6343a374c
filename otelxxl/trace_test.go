package otelxxl_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// inHandler is what a handler finds in its context.
type inHandler struct{ spans chan trace.SpanContext }

func newInHandler() inHandler { return inHandler{make(chan trace.SpanContext, 10)} }

func (h inHandler) run(ctx context.Context, _ *xxljob.Task) error {
	h.spans <- trace.SpanContextFromContext(ctx)
	return nil
}

// wants checks that the handler was called in the span, and returns it.
func (h inHandler) wants(t *testing.T, span tracetest.SpanStub) tracetest.SpanStub {
	t.Helper()
	if got := <-h.spans; got.SpanID() != span.SpanContext.SpanID() || got.TraceID() != span.SpanContext.TraceID() {
		t.Errorf("the handler was called in span %s of trace %s, want the one of %q", got.SpanID(), got.TraceID(), span.Name)
	}
	return span
}

// TestTraceOfATrigger: one trace from who asks to the handler of the same process.
func TestTraceOfATrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := newProcess(t), newInHandler()
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: p.Configure(xxljob.Config{App: "shop"}), Handlers: map[string]xxljob.Handler{"mail": h.run}},
			xxljob.Job{Name: "mails", Key: "mails", Handler: "mail"})
		ctx, request := p.asking(t)
		ids, err := s.TriggerJob(ctx, "", "mails", xxljob.Trigger{})
		must(t, err)
		ended(t, s, ids[0], xxljob.StateSucceeded)
		synctest.Wait()
		trigger, dispatch, process := p.named("trigger")[0], p.named("dispatch shop")[0], h.wants(t, p.named("process mail")[0])
		chain(t, request, trigger, dispatch, process)
		for name, tt := range map[string]struct {
			span tracetest.SpanStub
			kind trace.SpanKind
			want map[string]string
		}{
			"trigger":  {trigger, trace.SpanKindProducer, map[string]string{"messaging.operation.type": "create", "messaging.system": "xxljob"}},
			"dispatch": {dispatch, trace.SpanKindInternal, map[string]string{"messaging.operation.type": "send", "messaging.destination.name": "shop", "xxljob.trigger.type": "MANUAL"}},
			"process":  {process, trace.SpanKindConsumer, map[string]string{"messaging.operation.type": "process", "xxljob.job.key": "mails", "xxljob.handler": "mail"}},
		} {
			got := attributes(tt.span.Attributes)
			tt.want["messaging.message.id"] = strconv.FormatInt(ids[0], 10)
			for key, want := range tt.want {
				if got[key] != want {
					t.Errorf("%s: attribute %s is %q, want %q", name, key, got[key], want)
				}
			}
			if tt.span.SpanKind != tt.kind || tt.span.Status.Code != codes.Unset {
				t.Errorf("%s: kind %v, status %v", name, tt.span.SpanKind, tt.span.Status)
			}
		}
	})
}

// TestTracesOfWhatFollows: retries, parts and children are in the trace of the trigger, each
// with a dispatch of its own under it; and how a handler ended is the status of its span.
func TestTracesOfWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: p.Configure(xxljob.Config{App: "shop"}), Handlers: map[string]xxljob.Handler{
			"flaky": func(_ context.Context, task *xxljob.Task) error {
				switch task.Attempt {
				case 0:
					return errors.New("boom")
				case 1:
					panic("much worse")
				}
				return nil
			},
			"child": func(context.Context, *xxljob.Task) error { return nil },
			"later": func(context.Context, *xxljob.Task) error { return xxljob.Snooze(time.Hour) },
		}}, xxljob.Job{Name: "child", Key: "child", Handler: "child"},
			xxljob.Job{Name: "parent", Key: "parent", Handler: "flaky", Retries: 2, ChildKeys: []string{"shop/child"}},
			xxljob.Job{Name: "later", Key: "later", Handler: "later"})
		ctx, request := p.asking(t)
		_, err := s.TriggerJob(ctx, "", "parent", xxljob.Trigger{})
		must(t, err)
		_, err = s.TriggerJob(ctx, "", "later", xxljob.Trigger{})
		must(t, err)
		time.Sleep(10 * time.Minute)
		flaky, child := p.named("process flaky"), p.named("process child")
		if len(flaky) != 3 || len(child) != 1 {
			t.Fatalf("%d spans of attempts and %d of children, want 3 and 1", len(flaky), len(child))
		}
		dispatches := map[trace.SpanID]tracetest.SpanStub{}
		for _, d := range p.named("dispatch shop") {
			dispatches[d.SpanContext.SpanID()] = d
		}
		trigger := p.named("trigger")[0]
		for _, span := range append(flaky, child...) {
			chain(t, request, trigger, dispatches[span.Parent.SpanID()], span)
		}
		for i, want := range []string{"error", "panic", ""} {
			if got := attributes(flaky[i].Attributes)["error.type"]; got != want || (flaky[i].Status.Code == codes.Error) != (want != "") {
				t.Errorf("attempt %d: error.type %q, status %v, want %q", i, got, flaky[i].Status, want)
			}
		}
		if got := p.named("process later")[0].Status; got.Code == codes.Error {
			t.Errorf("a snoozed run has status %v", got)
		}
	})
}

// TestTracesOfASchedule: each run of a schedule begins a trace.
func TestTracesOfASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := newProcess(t), newInHandler()
		xxljobtest.NewWith(t, xxljobtest.Options{Config: p.Configure(xxljob.Config{App: "shop"}), Handlers: map[string]xxljob.Handler{"mail": h.run}},
			xxljob.Job{Name: "mails", Handler: "mail", Schedule: xxljob.FixedRate(time.Minute)})
		time.Sleep(150 * time.Second)
		dispatches, processes := p.named("dispatch shop"), p.named("process mail")
		if len(dispatches) != 2 || len(processes) != 2 || len(p.named("trigger")) != 0 {
			t.Fatalf("spans: %d, %d, %d, want two of each run and none of a trigger", len(dispatches), len(processes), len(p.named("trigger")))
		}
		for i := range dispatches {
			chain(t, dispatches[i], h.wants(t, processes[i]))
			if dispatches[i].Parent.IsValid() {
				t.Errorf("run %d: the dispatch has a parent", i)
			}
		}
		if dispatches[0].SpanContext.TraceID() == dispatches[1].SpanContext.TraceID() {
			t.Error("two runs of a schedule are in one trace")
		}
	})
}

// TestTraceThroughAnotherNode: the trace goes with the run's row to the node that has the
// handler.
func TestTraceThroughAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 10 // in shards of both nodes
		st, front, back, h := memory.New(), newProcess(t), newProcess(t), newInHandler()
		a := xxljobtest.NewWith(t, xxljobtest.Options{Store: st, Config: front.Configure(xxljob.Config{App: "front", Node: "front"})})
		b := xxljobtest.NewWith(t, xxljobtest.Options{Store: st, Config: back.Configure(xxljob.Config{App: "shop", Node: "back"}), Handlers: map[string]xxljob.Handler{"mail": h.run}})
		time.Sleep(time.Minute) // each has its share
		handedOver := 0
		for i := range jobs {
			front.spans.Reset()
			back.spans.Reset()
			job, err := a.AddJob(t.Context(), xxljob.Job{App: "shop", Name: "mails", Key: strconv.Itoa(i), Handler: "mail"})
			must(t, err)
			ctx, request := front.asking(t)
			id, err := a.TriggerOne(ctx, job.ID, xxljob.Trigger{})
			must(t, err)
			run := ended(t, a, id, xxljob.StateSucceeded)
			synctest.Wait()
			if run.Owner == a.Stats().Incarnation && strings.Contains(run.Address, b.Stats().Incarnation) {
				handedOver++
			}
			chain(t, request, front.named("trigger")[0], back.named("dispatch shop")[0], h.wants(t, back.named("process mail")[0]))
		}
		if handedOver == 0 || handedOver == jobs {
			t.Errorf("%d of %d runs were handed over, want some", handedOver, jobs)
		}
	})
}

// elsewhere is an executor in another process, as far as the scheduler can tell: over HTTP on
// loopback.
func elsewhere(t *testing.T, s xxljob.Scheduler, token string, middleware func(xxljob.Handler) xxljob.Handler, h xxljob.Handler) {
	t.Helper()
	admin, err := s.AdminHandler()
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: admin}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	e, err := executor.New(executor.Config{
		App: "shop", Addr: "127.0.0.1:0", Middleware: []func(xxljob.Handler) xxljob.Handler{middleware}, Logger: quiet(),
		Admins: []executor.AdminCluster{{Addresses: []string{"http://" + l.Addr().String()}, Token: token}},
	})
	must(t, err)
	must(t, e.Handle("mail", h))
	must(t, e.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
}

// TestTraceOverHTTP: and to an executor in another process, beside the keys of the protocol.
func TestTraceOverHTTP(t *testing.T) {
	front, back, h := newProcess(t), newProcess(t), newInHandler()
	cfg := xxljob.Config{App: "front", Logger: quiet(), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"shop": {"a token of the test"}}, Transport: wire.NewTransport(wire.TransportConfig{})}}
	s := xxljobtest.NewWith(t, xxljobtest.Options{Config: front.Configure(cfg)}, xxljob.Job{App: "shop", Name: "mails", Key: "mails", Handler: "mail", Retries: 100, RetryBackoff: xxljob.Backoff{First: 100 * time.Millisecond}})
	elsewhere(t, s, "a token of the test", back.Middleware, h.run)
	ctx, request := front.asking(t)
	_, err := s.TriggerJob(ctx, "shop", "mails", xxljob.Trigger{})
	must(t, err)
	process := h.wants(t, back.await(t, "process mail"))
	dispatch := front.await(t, "dispatch shop")
	chain(t, request, front.named("trigger")[0], dispatch, process)
	if got := attributes(dispatch.Attributes)["server.address"]; dispatch.SpanKind != trace.SpanKindClient || got != "127.0.0.1" {
		t.Errorf("the dispatch is of kind %v to %q, want a client's to the executor", dispatch.SpanKind, got)
	}
}

// TestTraceFromTriggerTx: a run that was planned in the host's own transaction, at an executor
// elsewhere.
func TestTraceFromTriggerTx(t *testing.T) {
	front, back, h := newProcess(t), newProcess(t), newInHandler()
	pool := pgtest.SharedPool(t)
	st, err := postgres.New(t.Context(), pool, postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true, Tracer: front, Logger: quiet()})
	must(t, err)
	t.Cleanup(st.Close)
	cfg := xxljob.Config{App: "front", Logger: quiet(), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"shop": {"a token of the test"}}, Transport: wire.NewTransport(wire.TransportConfig{})}}
	s := xxljobtest.NewWith(t, xxljobtest.Options{Store: st, Config: front.Configure(cfg)})
	job, err := s.AddJob(t.Context(), xxljob.Job{App: "shop", Name: "mails", Key: "mails", Handler: "mail", Retries: 100, RetryBackoff: xxljob.Backoff{First: 100 * time.Millisecond}})
	must(t, err)
	elsewhere(t, s, "a token of the test", back.Middleware, h.run)
	ctx, request := front.asking(t)
	tx, err := pool.Begin(ctx)
	must(t, err)
	id, err := st.TriggerTx(ctx, tx, job.ID, xxljob.Trigger{})
	must(t, err)
	must(t, tx.Commit(ctx))
	must(t, st.Wake(ctx, job.ID))
	process := h.wants(t, back.await(t, "process mail"))
	dispatch, trigger := front.await(t, "dispatch shop"), front.named("trigger")[0]
	chain(t, request, trigger, dispatch, process)
	if got := attributes(trigger.Attributes)["messaging.message.id"]; got != strconv.FormatInt(id, 10) {
		t.Errorf("the trigger's span is of run %s, want %d", got, id)
	}
}
