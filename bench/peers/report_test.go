package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// reported is a comparison that was measured already.
func reported(out io.Writer, drained ...float64) *bench {
	b := &bench{config: config{Only: []string{}}, out: out, progress: io.Discard}
	for i, v := range drained {
		who := []string{ours, riverName}[i%2]
		b.add(turn{part: partDrain, what: ofNodes(1), who: who}, sample{Rate: v, WAL: measure.Known(1000)})
	}
	return b
}

func TestAlternate(t *testing.T) {
	b := reported(io.Discard)
	var order []string
	broken := errors.New("broken")
	of := func(who string, err error) turn {
		return turn{partDrain, ofNodes(1), who, func(context.Context) (sample, error) { order = append(order, who); return sample{Rate: 1}, err }}
	}
	err := b.alternate(t.Context(), 2, of(ours, nil), of(riverName, broken))
	if !errors.Is(err, broken) || strings.Join(order, " ") != "ours river ours river" {
		t.Errorf("%v: %v", order, err)
	}
	if len(b.results) != 1 || len(b.results[0].Samples) != 2 {
		t.Errorf("rounds that failed are among %+v", b.results)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	b := reported(&out, 24_000, 20_000, 26_000, 20_000)
	b.results[0].Samples[0].Other = measure.Known(0.2)
	if err := b.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in 1 of 4 rounds", "25000 (24000–26000)", "ours / River 1.25 (1.20–1.30)", "at least 1.2 times as fast as River's  1.25 (1.20–1.30)  yes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestOneRoundIsNoInterval(t *testing.T) {
	var out bytes.Buffer
	if err := reported(&out, 24_000, 20_000).report(t.Context()); err != nil || strings.Contains(out.String(), "(24000") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	b := reported(&out, 24_000, 20_000)
	b.JSON = true
	if err := b.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	var p printed
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Results) != 2 || p.Results[0].Samples[0].Rate != 24_000 || len(p.Targets) != 1 || !p.Targets[0].Met {
		t.Errorf("%+v", p)
	}
}

func TestStrict(t *testing.T) {
	b := reported(io.Discard, 20_000, 20_000)
	if err := b.report(t.Context()); err != nil {
		t.Errorf("a target that is not met is an error without -strict: %v", err)
	}
	b.Strict = true
	if err := b.report(t.Context()); !errors.Is(err, errMissed) {
		t.Errorf("a target that is not met is %v with -strict", err)
	}
}

// TestTargets: each target is met by what meets it, and by nothing less. Of a lateness, that is
// less too where instants were not called at all.
func TestTargets(t *testing.T) {
	fine := func() *bench {
		b := reported(io.Discard, 24_000, 20_000)
		add := func(part, what, who string, s sample) { b.add(turn{part: part, what: what, who: who}, s) }
		of := func(offered, done, p50, p99, most float64) sample {
			return sample{Scheduled: true, Offered: offered, Rate: done, Late: &measure.Percentiles{P50: p50, P99: p99, Max: most}, Steady: measure.Known(1)}
		}
		add(partScheduled, what5k, ours, of(5000, 5000, 2, 10, 30))
		add(partScheduled, what10k, ours, of(10_000, 10_000, 2, 20, 30))
		add(partScheduled, whatHerd, ours, of(1667, 1667, 100, 200, 250))
		add(partScheduled, whatOnce, ours, of(20_000, 20_000, 2, 30, 50))
		add(partScheduled, whatOver, ours, of(30_000, 19_000, 2000, 3000, 3000))
		add(partMemory, whatHerd10k, ours, of(10_000, 10_000, 10, 50, 60))
		add(partMemory, whatHerd10k, gocronName, of(10_000, 10_000, 100, 250, 260))
		add(partMemory, whatHerd10k, robfigName, of(10_000, 10_000, 20, 50, 60))
		add(partMemory, whatHerd50k, ours, of(50_000, 50_000, 100, 400, 500))
		add(partMemory, whatSpread, ours, of(60_000, 60_000, 1, 20, 30))
		add(partMemory, whatInMemory, ours, sample{Rate: 150_000})
		return b
	}
	missed := func(b *bench) (n int) {
		for _, x := range b.targets() {
			if !x.Met {
				n++
			}
		}
		return n
	}
	b := fine()
	if n := missed(b); n != 0 || len(b.targets()) != 15 {
		t.Errorf("%d of %d targets are not met: %+v", n, len(b.targets()), b.targets())
	}
	for _, r := range fine().results {
		if r.Who != ours {
			continue
		}
		b := fine()
		s := &b.find(r.Part, r.What, ours).Samples[0]
		s.Rate *= 0.9
		if s.Late != nil {
			s.Late = &measure.Percentiles{P50: 1.1 * s.Late.P50, P99: 1.1 * s.Late.P99, Max: 1.1 * s.Late.Max}
		}
		// Of what River drains, either of two situations may do it.
		if n := missed(b); n == 0 && r.What != whatOnce {
			t.Errorf("%s, %s: a tenth worse meets all targets", r.Part, r.What)
		}
		if s.Late != nil && r.Part == partMemory && r.What == whatSpread {
			s.Late, s.Uncalled = &measure.Percentiles{}, 1
			if n := missed(b); n < 2 {
				t.Errorf("%s: what was not called at all is in time", r.What)
			}
		}
	}
}
