//go:build unix

package siege

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

// nodeConfig is what a node is told.
type nodeConfig struct {
	DSN    string `json:"dsn"`
	Tokens tokens `json:"tokens"`
	// Honest and Hostile are how many jobs the apps have, each due every second.
	Honest  int `json:"honestJobs"`
	Hostile int `json:"hostileJobs"`
	// Lost is how many runs of the hostile app have ended as lost.
	Lost int `json:"lost"`
}

// Node is the process of the scheduler: it serves until its input ends.
func Node(ctx context.Context, in io.Reader, out io.Writer) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) // of the store as well
	var cfg nodeConfig
	p, err := newParent(in, out, &cfg)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, cfg.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	st, err := postgres.New(ctx, pool, postgres.Config{Schema: schema, AutoMigrate: true})
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := xxljob.New(st, xxljob.Config{
		App: "here", Node: "besieged",
		HTTP: xxljob.HTTPConfig{
			Tokens:  map[string][]string{honestApp: {cfg.Tokens.Honest}, hostileApp: {cfg.Tokens.Hostile}},
			JobsAPI: []string{hostileApp}, // so that there is more to be kept busy
		},
	})
	if err != nil {
		return err
	}
	lost, err := loseRuns(ctx, st, s, cfg.Lost)
	if err != nil {
		return err
	}
	server, admin, err := serve(s)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := s.Start(ctx); err != nil {
		return err
	}
	go watch(ctx, p)
	p.tell(message{Kind: kindReady, Admin: admin, Lost: lost})
	jobs := nodeJobs{s: s, cfg: cfg}
	err = p.obey(func(order string) error { return jobs.obey(ctx, order) })
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(err, s.Stop(stopping))
}

// serve serves the scheduler as the documentation of wire and examples/standalone have it.
func serve(s xxljob.Scheduler) (server *http.Server, admin string, err error) {
	h, err := s.AdminHandler()
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go func() { _ = server.Serve(l) }()
	return server, "http://" + l.Addr().String() + "/xxl-job-admin", nil
}

// nodeJobs are the jobs of both apps.
type nodeJobs struct {
	s   xxljob.Scheduler
	cfg nodeConfig
	ids []int64
}

func (n *nodeJobs) obey(ctx context.Context, order string) error {
	switch order {
	case orderJobs:
		return errors.Join(n.add(ctx, honestApp, n.cfg.Honest), n.add(ctx, hostileApp, n.cfg.Hostile))
	case orderStop:
		var err error
		for _, id := range n.ids {
			err = errors.Join(err, n.s.StopJob(ctx, id))
		}
		return err
	}
	return fmt.Errorf("there is no order %q", order)
}

// add adds jobs that are due every second, spread over it.
func (n *nodeJobs) add(ctx context.Context, app string, jobs int) error {
	began := time.Now()
	for i := range jobs {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(jobs))))
		j, err := n.s.AddJob(ctx, xxljob.Job{App: app, Name: fmt.Sprintf("%s %d", app, i), Handler: "work", Route: "ROUND", Schedule: xxljob.FixedRate(time.Second)})
		if err != nil {
			return err
		}
		n.ids = append(n.ids, j.ID)
	}
	return nil
}

// watch tells of the live heap, as a collection leaves it, and of the goroutines each
// second.
func watch(ctx context.Context, p *parent) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	for t := time.NewTicker(time.Second); ; {
		runtime.GC()
		metrics.Read(samples)
		p.tell(message{Kind: kindSample, Heap: int64(samples[0].Value.Uint64()), Total: int64(samples[1].Value.Uint64()), Goroutines: int64(samples[2].Value.Uint64())})
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
