package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/xxljob/xxljob/internal/test/await"
)

// buffer takes spans.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// started runs the program until the end of the test, and returns its address and its spans.
func started(t *testing.T) (address string, spans *buffer, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	spans = &buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln, spans) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return ln.Addr().String(), spans, stop
}

// series are the labels that the series of each metric have, by its name as an expression has
// it: that of a histogram with _bucket, _sum and _count.
type series map[string][]map[string]string

func scrape(t *testing.T, address string) series {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := series{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if m.GetHistogram() == nil {
				found[name] = append(found[name], labels)
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				found[name+suffix] = append(found[name+suffix], labels)
			}
		}
	}
	return found
}

// has reports whether a metric has a series with the label, "" for a series at all.
func (s series) has(metric, label string) bool {
	return slices.ContainsFunc(s[metric], func(labels map[string]string) bool {
		_, there := labels[label]
		return label == "" || there
	})
}

// dashboard is what this test reads of dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		Description string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	selector = regexp.MustCompile(`\b([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)`)
	ours     = regexp.MustCompile(`\b(?:xxljob|messaging)_[a-z_]+\b`)
	inLegend = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// uses are the metrics of an expression, and the labels that it asks of each.
func uses(expr, legend string) map[string][]string {
	var grouped []string
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			grouped = append(grouped, strings.TrimSpace(label))
		}
	}
	for _, l := range inLegend.FindAllStringSubmatch(legend, -1) {
		grouped = append(grouped, l[1])
	}
	used := map[string][]string{}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			used[s[1]] = append(used[s[1]], m[1])
		}
	}
	bare := grouping.ReplaceAllString(selector.ReplaceAllString(expr, "$1"), "")
	for _, metric := range ours.FindAllString(bare, -1) {
		used[metric] = append(used[metric], grouped...)
	}
	return used
}

// fromElsewhere are labels that a Prometheus gives, or a histogram has.
var fromElsewhere = []string{"instance", "le"}

// TestDashboard: every metric that the dashboard asks for is there, with the labels that it
// asks for; there is a row for each matter, and no two panels are in one place.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	address, _, _ := started(t)
	missing := func(found series) (lacks []string) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for metric, labels := range uses(target.Expr, target.LegendFormat) {
					for _, label := range append(labels, "") {
						if !slices.Contains(fromElsewhere, label) && !found.has(metric, label) {
							lacks = append(lacks, fmt.Sprintf("%s: %s{%s}", p.Title, metric, label))
						}
					}
				}
			}
		}
		return lacks
	}
	var lacks []string
	await.Until(t, "all that the dashboard asks for is recorded", func() bool {
		lacks = missing(scrape(t, address))
		return len(lacks) == 0 || t.Failed()
	})
	if len(lacks) > 0 {
		t.Errorf("the dashboard asks for what is not there: %q", lacks)
	}
	var rows []string
	seen, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if seen[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		seen[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
		} else if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no description, or nothing to show", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is where %q is, or beside the page", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
	}
	if want := []string{"Outcomes", "Lateness", "Duration", "Waiting", "Lanes", "Shards", "Store", "Alarms", "Faults"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	for _, v := range d.Templating.List {
		if used := ours.FindAllString(v.Definition, -1); v.Name == "app" && (len(used) != 2 || !scrape(t, address).has(used[0], used[1])) {
			t.Errorf("the variable %s is %q, which is not there", v.Name, v.Definition)
		}
	}
}

// TestSharesOfRuns: records of skipped instants are no runs, so where outcomes are divided by
// each other, none of both sides has them.
func TestSharesOfRuns(t *testing.T) {
	shares := 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			sides := strings.Split(target.Expr, "/ sum(rate(xxljob_run_outcomes_total{")
			if len(sides) < 2 {
				continue
			}
			shares++
			if labels, _, _ := strings.Cut(sides[1], "}"); !strings.Contains(labels, `xxljob_run_state!="skipped"`) {
				t.Errorf("panel %q divides by all outcomes: %s", p.Title, target.Expr)
			}
		}
	}
	if shares != 1 {
		t.Errorf("%d panels show shares of runs, want 1", shares)
	}
}

// TestManySeries: 200 apps in each state and of each type are told apart.
func TestManySeries(t *testing.T) {
	t.Parallel()
	p, err := newProviders(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.metrics.Meter("test").Int64Counter("runs")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		c.Add(t.Context(), 1, metric.WithAttributes(attribute.Int("app", i)))
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if n := strings.Count(w.Body.String(), "\nruns_total{"); n != 20_000 || strings.Contains(w.Body.String(), "overflow") {
		t.Errorf("%d series, want 20000 and none that stands for others", n)
	}
}

// TestUses: what this test reads of expressions.
func TestUses(t *testing.T) {
	got := uses(`histogram_quantile(0.99, sum by (le, xxljob_app) (rate(xxljob_a_bucket{xxljob_app=~"$app",x_y!="z"}[5m]))) / sum(xxljob_b)`, "{{xxljob_app}} {{other}}")
	want := map[string][]string{"xxljob_a_bucket": {"xxljob_app", "x_y", "le", "xxljob_app", "xxljob_app", "other"}, "xxljob_b": {"le", "xxljob_app", "xxljob_app", "other"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTraces: the pieces of the work are in the trace of the run that has cut it.
func TestTraces(t *testing.T) {
	t.Parallel()
	address, spans, stop := started(t)
	await.Until(t, "pieces have run", func() bool {
		found := scrape(t, address)
		return slices.ContainsFunc(found["xxljob_run_outcomes_total"], func(l map[string]string) bool { return l["xxljob_trigger_type"] == "MANUAL" })
	})
	stop()
	type span struct {
		Name        string
		SpanContext struct{ TraceID, SpanID string }
		Parent      struct{ TraceID, SpanID string }
	}
	byID := map[string]span{}
	var pieces []span
	spans.mu.Lock()
	defer spans.mu.Unlock()
	for all := json.NewDecoder(&spans.text); all.More(); {
		var s span
		if err := all.Decode(&s); err != nil {
			t.Fatal(err)
		}
		byID[s.SpanContext.SpanID] = s
		pieces = append(pieces, s)
	}
	whole := 0
	for _, s := range pieces {
		var path []string
		for ; s.Name != ""; s = byID[s.Parent.SpanID] {
			path = append(path, s.Name)
		}
		if fmt.Sprint(path) == "[process report dispatch shop trigger process cut dispatch shop]" {
			whole++
		}
	}
	if whole == 0 {
		t.Error("no piece of the work is in the trace of the run that has cut it")
	}
}
