package postgres_test

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// sqlOf returns the one block of SQL of a document that has the text, as it stands there.
func sqlOf(t *testing.T, document, part string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	must(t, err)
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], part) {
			found = append(found, block[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of SQL with %q, want 1", document, len(found), part)
	}
	return found[0]
}

// leftovers are the keys of the jobs that the query of a document lists in a schema, each
// with an id that is a job's.
func leftovers(t *testing.T, document string, pool *pgxpool.Pool, schema string) (keys []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), strings.ReplaceAll(sqlOf(t, document, "xxl_job_named"), "xxljob.", schema+"."))
	must(t, err)
	jobs, err := pgx.CollectRows(rows, pgx.RowToMap)
	must(t, err)
	for _, job := range jobs {
		key := job["job_key"].(string)
		if id := ask[int32](t, pool, "select id from "+schema+".xxl_job_info where job_key = $1", key); job["id"] != id {
			t.Errorf("%s: the id of %q is %v, not %v", document, key, id, job["id"])
		}
		keys = append(keys, key)
	}
	return keys
}

// TestWhatAnUpgradeLeavesBehind: the query of the documents lists the jobs from before the
// store had lists that no list has named since, until they are stopped; among them those
// that are ensured by themselves, and no others.
func TestWhatAnUpgradeLeavesBehind(t *testing.T) {
	inServer(t)
	fromBeforeLists(t, func(t *testing.T, from int, pool *pgxpool.Pool, schema string, st *postgres.Store) {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		daily := func(key string) store.Job {
			return store.Job{Name: key, Key: key, Handler: "work", Schedule: schedule.Cron("0 0 3 * * ?")}
		}
		ensure := func(keys ...string) {
			var list []store.Job
			for _, key := range keys {
				list = append(list, daily(key))
			}
			_, err := s.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{Prune: true})
			must(t, err)
			_, err = s.EnsureJob(t.Context(), daily("single"))
			must(t, err)
		}
		stop := func(key string) {
			job, err := st.JobByKey(t.Context(), "app", key)
			must(t, err)
			must(t, s.StopJob(t.Context(), job.ID))
		}
		wantLeft := func(when string, want ...string) {
			for _, document := range []string{"docs/postgres.md", "docs/zh-CN/postgres.md", "CHANGELOG.md"} {
				if got := leftovers(t, document, pool, schema); !slices.Equal(got, want) {
					t.Errorf("%s, %s: %q, want %q", document, when, got, want)
				}
			}
		}
		ensure("kept", "left over", "left over and stopped")
		stop("left over and stopped")
		_, err = s.AddJob(t.Context(), daily("by hand"))
		must(t, err)
		if from == 4 { // as migration 3 has left it
			run(t, pool, fmt.Sprintf("delete from %s.xxl_job_named", schema))
			run(t, pool, fmt.Sprintf("insert into %s.xxl_job_named select id, 0 from %[1]s.xxl_job_info where ensured <> ''", schema))
		}
		backTo(t, pool, schema, from)
		must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))

		ensure("kept", "new", "of one release")
		ensure("kept", "new") // what a list has named is for lists to prune
		wantLeft("after the upgrade", "left over", "single")
		stop("left over")
		wantLeft("when what is left over was stopped", "single")
	})
}
