package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const riverName = "river"

// numbered is a job of River that does nothing.
type numbered struct {
	Num int `json:"num"`
}

func (numbered) Kind() string { return "numbered" }

// riverWorker notes its calls.
type riverWorker struct {
	river.WorkerDefaults[numbered]
	calls *calls
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[numbered]) error {
	w.calls.note(job.ID, job.ID, job.ScheduledAt)
	return nil
}

// riverConfig has the settings of River's own benchmark.
func riverConfig(c *calls) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{calls: c})
	return &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           workers,
		Logger:            errorsOnly(),
	}
}

// riverContestant is a client of River.
type riverContestant struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func enterRiver(ctx context.Context, t task, c *calls) (contestant, error) {
	pool, err := openPool(ctx, t.DSN, t.Conns)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), riverConfig(c))
	return &riverContestant{pool, client}, err
}

func (r *riverContestant) start(ctx context.Context) error { return r.client.Start(ctx) }

func (r *riverContestant) stop(ctx context.Context) error {
	defer r.pool.Close()
	return r.client.Stop(ctx)
}

// riverData is River's database, as the measurement prepares it and looks into it.
type riverData struct{ pool *pgxpool.Pool }

// insert makes the tables, and n jobs, each due at its time; a zero time is now.
func (d riverData) insert(ctx context.Context, n int, due func(i int) time.Time) error {
	driver := riverpgxv5.New(d.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: errorsOnly()})
	if err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: errorsOnly()})
	if err != nil {
		return err
	}
	const page = 5000
	for from := 0; from < n && err == nil; from += page {
		jobs := make([]river.InsertManyParams, 0, page)
		for i := from; i < min(from+page, n); i++ {
			jobs = append(jobs, river.InsertManyParams{Args: numbered{i}, InsertOpts: &river.InsertOpts{ScheduledAt: due(i)}})
		}
		_, err = client.InsertManyFast(ctx, jobs)
	}
	if err == nil {
		_, err = d.pool.Exec(ctx, "analyze")
	}
	return err
}

func (d riverData) waiting(ctx context.Context, n, _ int) error {
	return d.insert(ctx, n, func(int) time.Time { return time.Time{} })
}

// open is whether any job is not over yet.
func (d riverData) open(ctx context.Context) (open bool, err error) {
	err = d.pool.QueryRow(ctx, "select exists (select from river_job where state in ('available', 'pending', 'retryable', 'running', 'scheduled'))").Scan(&open)
	return open, err
}

func (d riverData) states(ctx context.Context) (s states, err error) {
	err = d.pool.QueryRow(ctx, `select count(*) filter (where state = 'completed'), count(*) filter (where state not in ('completed', 'scheduled', 'available'))
	from river_job`).Scan(&s.succeeded, &s.bad)
	return s, err
}
