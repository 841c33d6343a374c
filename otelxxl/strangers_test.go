package otelxxl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/xxljobtest"
)

// TestTracesOfStrangers: what a peer gives as a trace is an id or nothing, and whether it is
// sampled is the host's to say.
func TestTracesOfStrangers(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	good := "00-" + id + "-b7ad6b7169203331-01"
	for name, tt := range map[string]struct {
		trace, state string
		follows      bool // it is in that trace
	}{
		"a trace":                   {good, "", true},
		"with a state":              {good + " a=b", "a=b", true},
		"with a state that is none": {good + " <script>;;=", "", true},
		"nothing":                   {"", "", false},
		"zeros":                     {"00-00000000000000000000000000000000-0000000000000000-01", "", false},
		"the end of versions":       {strings.Replace(good, "00-", "ff-", 1), "", false},
		"upper case":                {strings.ToUpper(good), "", false},
		"a command":                 {"$(reboot)", "", false},
		"more than fits":            {good + strings.Repeat("f", 10_000), "", false},
	} {
		for sampler, s := range map[string]sdktrace.Sampler{
			"by default":    sdktrace.ParentBased(sdktrace.AlwaysSample()),
			"not of others": sdktrace.ParentBased(sdktrace.AlwaysSample(), sdktrace.WithRemoteParentSampled(sdktrace.NeverSample())),
		} {
			t.Run(name+" "+sampler, func(t *testing.T) {
				spans := tracetest.NewInMemoryExporter()
				tel := otelxxl.New(otelxxl.Config{
					TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(s)), MeterProvider: noop.NewMeterProvider(), Logger: quiet(),
				})
				must(t, tel.Middleware(func(ctx context.Context, _ *xxljob.Task) error {
					span := trace.SpanContextFromContext(ctx)
					if got := span.TraceID().String() == id; got != tt.follows || span.TraceState().String() != tt.state {
						t.Errorf("the handler is in trace %s with state %q", span.TraceID(), span.TraceState())
					}
					if want := !tt.follows || sampler == "by default"; span.IsSampled() != want {
						t.Errorf("it is sampled: %t, want %t", span.IsSampled(), want)
					}
					return nil
				})(t.Context(), &xxljob.Task{Handler: "h", Trace: tt.trace}))
			})
		}
	}
}

// TestSpansHaveNoParameters: nor results; and of an error so much.
func TestSpansHaveNoParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "of-nobody's-business"
		p := newProcess(t)
		s := xxljobtest.NewWith(t, xxljobtest.Options{Config: p.Configure(xxljob.Config{App: "shop"}), Handlers: map[string]xxljob.Handler{
			"mail": func(_ context.Context, task *xxljob.Task) error { task.SetResult("done " + secret); return nil },
			"fail": func(context.Context, *xxljob.Task) error { return errors.New(strings.Repeat("é", 10_000)) },
		}}, xxljob.Job{Name: "mails", Key: "mails", Handler: "mail", Param: "job " + secret}, xxljob.Job{Name: "fail", Key: "fail", Handler: "fail"})
		for _, param := range []*string{nil, new("run " + secret)} {
			ids, err := s.TriggerJob(t.Context(), "", "mails", xxljob.Trigger{Param: param})
			must(t, err)
			ended(t, s, ids[0], xxljob.StateSucceeded)
		}
		ids, err := s.TriggerJob(t.Context(), "", "fail", xxljob.Trigger{})
		must(t, err)
		ended(t, s, ids[0], xxljob.StateFailed)
		synctest.Wait()
		all := p.spans.GetSpans()
		if len(all) != 9 {
			t.Errorf("%d spans, want 9", len(all))
		}
		for _, span := range all {
			if text := fmt.Sprintf("%+v", span); strings.Contains(text, secret) {
				t.Errorf("span %q has what it should not: %s", span.Name, text)
			}
			if n := len(span.Status.Description); n > 2000 || span.Name == "process fail" && n != 2000 {
				t.Errorf("span %q has %d bytes of its error, want 2000 at most", span.Name, n)
			}
		}
	})
}
