//go:build unix

package siege

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store"
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
	// Sessions are the secrets of sessions of the console.
	Sessions sessions `json:"sessions"`
	// Profiles is where profiles of the heap go; empty for none.
	Profiles string `json:"profiles"`
}

// Node is the process of the scheduler: it serves until its input ends.
func Node(ctx context.Context, in io.Reader, out io.Writer) error {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) // of the store as well
	var cfg nodeConfig
	p, err := newParent(in, out, &cfg)
	if err != nil {
		return err
	}
	if cfg.Profiles != "" {
		runtime.MemProfileRate = 64 << 10
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
	heavy, err := people(ctx, st, s, cfg.Sessions)
	if err != nil {
		return err
	}
	server, admin, pages, err := serve(st, s)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := s.Start(ctx); err != nil {
		return err
	}
	go watch(ctx, p, cfg.Profiles)
	p.tell(message{Kind: kindReady, Admin: admin, Lost: lost, Console: pages, Heavy: heavy})
	jobs := nodeJobs{s: s, cfg: cfg}
	err = p.obey(func(order string) error { return jobs.obey(ctx, order) })
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(err, s.Stop(stopping))
}

// serve serves the scheduler as the documentation of wire and examples/standalone have it.
func serve(st *postgres.Store, s xxljob.Scheduler) (server *http.Server, admin, pages string, err error) {
	h, err := s.AdminHandler()
	if err != nil {
		return nil, "", "", err
	}
	c, err := console.New(console.Config{Store: st, Scheduler: s, Auth: console.Accounts()})
	if err != nil {
		return nil, "", "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/console/", http.StripPrefix("/console", c))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", "", err
	}
	server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go func() { _ = server.Serve(l) }()
	base := "http://" + l.Addr().String()
	return server, base + "/xxl-job-admin", base + "/console/", nil
}

// sessions are secrets: of an admin, who is honest, and of a viewer of the hostile app.
type sessions struct {
	Admin  string `json:"admin"`
	Viewer string `json:"viewer"`
}

// consoleAdmin is the name of the admin, which everybody knows.
const consoleAdmin = "admin"

// heavyRuns is how many runs with a large parameter the hostile app has planned ahead.
const heavyRuns = 60

// people adds the users of the console, each with a session, and what the hostile app has to show: runs
// whose parameters are as large as they may be, and nested. It returns one of them.
func people(ctx context.Context, st *postgres.Store, s xxljob.Scheduler, secrets sessions) (run int64, err error) {
	for _, u := range []struct {
		console.User
		secret string
	}{{console.User{Name: consoleAdmin, Admin: true}, secrets.Admin}, {console.User{Name: "viewer", Apps: map[string]console.Role{hostileApp: console.Viewer}}, secrets.Viewer}} {
		if err := console.CreateUser(ctx, st, u.User, rand.Text()); err != nil {
			return 0, err
		}
		sum := sha256.Sum256([]byte(u.secret))
		if _, err := st.AddSession(ctx, store.Session{User: u.Name, Hash: string(sum[:])}, store.SessionLimits{Idle: 12 * time.Hour, Most: 24 * time.Hour}); err != nil {
			return 0, err
		}
	}
	j, err := s.AddJob(ctx, xxljob.Job{App: hostileApp, Name: "heavy", Handler: "work", Schedule: xxljob.Manual()})
	if err != nil {
		return 0, err
	}
	const depth = 6_000
	param := strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("1,", 15_000) + "1" + strings.Repeat("]}", depth/2)
	for range heavyRuns {
		ids, err := s.Trigger(ctx, j.ID, xxljob.Trigger{At: time.Now().Add(24 * time.Hour), Param: &param})
		if err != nil {
			return 0, err
		}
		run = ids[0]
	}
	return run, nil
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
func watch(ctx context.Context, p *parent, profiles string) {
	most := int64(0)
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	for t := time.NewTicker(time.Second); ; {
		runtime.GC()
		metrics.Read(samples)
		p.tell(message{Kind: kindSample, Heap: int64(samples[0].Value.Uint64()), Total: int64(samples[1].Value.Uint64()), Goroutines: int64(samples[2].Value.Uint64())})
		if live := int64(samples[0].Value.Uint64()); profiles != "" && live > most {
			most = live
			profile(profiles, live)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// profile writes what the heap is made of, as of the last collection.
func profile(dir string, live int64) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("heap-%s-%dMiB.pprof", time.Now().Format("150405"), live>>20)))
	if err == nil {
		err = errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
	}
	if err != nil {
		slog.Warn("the heap has no profile", "error", err)
	}
}
