package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shardWatch prints how many shards the node has whenever that changes, and whom
// it got them from. The scheduler needs nothing of this: it is there to be seen.
type shardWatch struct {
	pool    *pgxpool.Pool
	schema  string
	printer *printer

	owners map[int]string  // of shards, as last read: incarnations
	former map[string]bool // incarnations of this node's name from before
	has    int
}

// begin reads who has which shards before the node starts.
func (w *shardWatch) begin(ctx context.Context) (err error) {
	w.former = map[string]bool{}
	w.owners, err = w.read(ctx)
	for _, owner := range w.owners {
		w.former[owner] = true
	}
	return err
}

// run looks until ctx ends. An error is the scheduler's to report.
func (w *shardWatch) run(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if owners, err := w.read(ctx); err == nil {
				w.compare(owners)
			}
		}
	}
}

func (w *shardWatch) read(ctx context.Context) (map[int]string, error) {
	table := pgx.Identifier{w.schema, "xxl_job_lock"}.Sanitize()
	rows, err := w.pool.Query(ctx, "select shard, owner from "+table)
	if err != nil {
		return nil, err
	}
	owners := map[int]string{}
	var shard int
	var owner string
	_, err = pgx.ForEachRow(rows, []any{&shard, &owner}, func() error {
		owners[shard] = owner
		return nil
	})
	return owners, err
}

// mine reports whether the incarnation is this process: a node's name, a dash and
// something random.
func (w *shardWatch) mine(incarnation string) bool {
	return nodeOf(incarnation) == w.printer.node && !w.former[incarnation]
}

func nodeOf(incarnation string) string {
	return incarnation[:max(strings.LastIndexByte(incarnation, '-'), 0)]
}

func (w *shardWatch) compare(owners map[int]string) {
	has, from := 0, map[string]int{}
	for shard, owner := range owners {
		if !w.mine(owner) {
			continue
		}
		has++
		if before := w.owners[shard]; before != owner {
			from[nodeOf(before)]++
		}
	}
	w.owners = owners
	if has == w.has && len(from) == 0 {
		return
	}
	w.has = has
	text := ""
	for _, node := range slices.Sorted(maps.Keys(from)) {
		if node == "" {
			text += fmt.Sprintf("  %d free ones", from[node])
		} else {
			text += fmt.Sprintf("  took over %d from %s", from[node], node)
		}
	}
	w.printer.say("shards %d%s", has, text)
}
