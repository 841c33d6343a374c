package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// The parts of the comparison, in the order in which they are run.
const (
	partDrain     = "drain"
	partNodes     = "nodes"
	partScheduled = "scheduled"
	partMemory    = "memory"
)

func parts() []string { return []string{partDrain, partNodes, partScheduled, partMemory} }

// bench is one comparison.
type bench struct {
	config
	pace     pace
	server   *server // nil where no part needs one
	out      io.Writer
	progress io.Writer
	results  []*result
}

// has is whether a part was chosen.
func (b *bench) has(part string) bool { return len(b.Only) == 0 || slices.Contains(b.Only, part) }

// run measures the chosen parts and reports. Where a round fails, what the others have given is
// reported nevertheless.
func (b *bench) run(ctx context.Context) error {
	var err error
	for _, p := range []struct {
		part string
		do   func(context.Context) error
	}{{partDrain, b.drains}, {partNodes, b.nodes}, {partScheduled, b.schedules}, {partMemory, b.memories}} {
		if b.has(p.part) && ctx.Err() == nil {
			err = errors.Join(err, p.do(ctx))
		}
	}
	return errors.Join(err, b.report(ctx))
}

// turn is a contestant's round in a situation.
type turn struct {
	part, what, who string
	do              func(context.Context) (sample, error)
}

// alternate has each of the turns so many rounds, one after the other and again.
func (b *bench) alternate(ctx context.Context, rounds int, turns ...turn) error {
	var errs []error
	for round := range rounds {
		for _, t := range turns {
			began := time.Now()
			s, err := t.do(ctx)
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %s, round %d: %w", t.part, t.what, t.who, round+1, err))
				continue
			}
			fmt.Fprintf(b.progress, "%s, %s, %s: round %d of %d, %.0f units/s, other load %s, %.0f s\n",
				t.part, t.what, t.who, round+1, rounds, s.Rate, s.Other.Text(2), time.Since(began).Seconds())
			b.add(t, s)
		}
	}
	return errors.Join(errs...)
}

func (b *bench) add(t turn, s sample) {
	if r := b.find(t.part, t.what, t.who); r != nil {
		r.Samples = append(r.Samples, s)
		return
	}
	b.results = append(b.results, &result{t.part, t.what, t.who, []sample{s}})
}

// find is the result of a contestant in a situation, nil where there is none.
func (b *bench) find(part, what, who string) *result {
	for _, r := range b.results {
		if r.Part == part && r.What == what && r.Who == who {
			return r
		}
	}
	return nil
}

// ofNodes names the drains.
func ofNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprint(n, " nodes")
}

func (b *bench) drainTurns(part string, nodes int) (turns []turn) {
	for _, who := range []string{ours, riverName} {
		turns = append(turns, turn{part, ofNodes(nodes), who, func(ctx context.Context) (sample, error) { return b.drain(ctx, who, nodes) }})
	}
	return turns
}

func (b *bench) drains(ctx context.Context) error {
	return b.alternate(ctx, b.Rounds, b.drainTurns(partDrain, 1)...)
}

func (b *bench) nodes(ctx context.Context) error {
	return errors.Join(b.alternate(ctx, min(b.Rounds, 2), b.drainTurns(partNodes, 2)...), b.alternate(ctx, min(b.Rounds, 2), b.drainTurns(partNodes, 4)...))
}

// Situations of part scheduled.
const (
	what5k   = "5,000/s"
	what10k  = "10,000/s"
	whatHerd = "herd of 5,000"
	whatOnce = "as River drains"
	whatOver = "1.5 x that"
)

// herdEvery is how far herds are apart in Postgres.
const herdEvery = 3 * time.Second

func (b *bench) schedules(ctx context.Context) error {
	drained, err := b.riverDrains(ctx)
	if err != nil {
		return err
	}
	var turns []turn
	of := func(what string, p plan) {
		turns = append(turns, turn{partScheduled, what, ours, func(ctx context.Context) (sample, error) { return b.scheduled(ctx, p) }})
	}
	of(what5k, plan{jobs: 5000, every: time.Second})
	turns = append(turns, turn{partScheduled, what5k, riverName, func(ctx context.Context) (sample, error) {
		return b.scheduledRiver(ctx, plan{jobs: 5000, every: time.Second})
	}})
	of(what10k, plan{jobs: 10_000, every: time.Second})
	of(whatHerd, plan{jobs: 5000, every: herdEvery, herd: true})
	of(whatOnce, plan{jobs: drained, every: time.Second})
	of(whatOver, plan{jobs: drained * 3 / 2, every: time.Second})
	return b.alternate(ctx, b.Rounds, turns...)
}

// riverDrains is how many jobs a second River drains: as it was measured, or as the flag says,
// or else in one round now.
func (b *bench) riverDrains(ctx context.Context) (int, error) {
	if r := b.find(partDrain, ofNodes(1), riverName); r != nil {
		x, _ := r.over(rate)
		return int(x.Median), nil
	}
	if b.Rate > 0 {
		return b.Rate, nil
	}
	s, err := b.drain(ctx, riverName, 1)
	return int(s.Rate), err
}

// Situations of part memory.
const (
	whatHerd10k  = "herd of 10,000 every second"
	whatHerd50k  = "herd of 50,000 every second"
	whatSpread   = "60,000/s, spread"
	whatInMemory = "drain"
)

func (b *bench) memories(ctx context.Context) error {
	var turns []turn
	of := func(what, who string, jobs int, spread bool) {
		turns = append(turns, turn{partMemory, what, who, func(ctx context.Context) (sample, error) {
			return b.inMemory(ctx, who, jobs, spread)
		}})
	}
	for _, who := range []string{ours, gocronName, robfigName, quartzName} {
		of(whatHerd10k, who, 10_000, false)
	}
	for _, who := range []string{ours, gocronName, robfigName, quartzName} {
		of(whatHerd50k, who, 50_000, false)
	}
	of(whatSpread, ours, 60_000, true)
	turns = append(turns, turn{partMemory, whatInMemory, ours, b.drainInMemory})
	return b.alternate(ctx, min(b.Rounds, 2), turns...)
}
