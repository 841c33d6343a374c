package postgres_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// BenchmarkIdle counts the statements that a node with a thousand jobs sends while
// none of them is due: over the pool and over the lock connection, but for BEGIN,
// SET and COMMIT.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		var sent statements
		s := openOn(b, pgtest.Pool(b, traced(&sent)), postgres.Config{})
		sched, err := xxljob.New(s, xxljob.Config{App: "idle", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		if err := sched.Handle("noop", func(context.Context, *xxljob.Task) error { return nil }); err != nil {
			b.Fatal(err)
		}
		for i := range 1000 {
			_, err := sched.AddJob(b.Context(), store.Job{Name: "job " + strconv.Itoa(i), Handler: "noop", Schedule: schedule.FixedRate(100 * time.Hour)})
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := sched.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		before := len(counted(&sent))
		const during = 20 * time.Second
		time.Sleep(during)
		last := counted(&sent)[before:]
		b.ReportMetric(float64(len(last))/during.Seconds(), "statements/s")
		b.ReportMetric(0, "ns/op")
		if err := sched.Stop(context.Background()); err != nil {
			b.Error(err)
		}
		kinds := map[string]int{}
		for _, sql := range last {
			words := strings.Join(strings.Fields(sql), " ")
			kinds[words[:min(len(words), 60)]]++
		}
		for sql, n := range kinds {
			b.Logf("%4d  %s", n, sql)
		}
	}
}

// counted are the statements that count.
func counted(sent *statements) (list []string) {
	for _, batch := range sent.with("") {
		for sql := range strings.SplitSeq(batch, "; ") {
			word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
			switch {
			case word == "begin", word == "set", word == "commit", strings.HasPrefix(sql, "select pg_catalog.set_config("):
			default:
				list = append(list, sql)
			}
		}
	}
	return list
}
