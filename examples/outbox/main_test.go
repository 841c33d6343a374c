package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/xxljobtest"
)

// outgoing is a mailer for tests. It keeps what it was told to send.
type outgoing struct {
	mu    sync.Mutex
	mails []mail // guarded by mu
	err   error  // guarded by mu: what it answers instead
}

func (o *outgoing) send(_ context.Context, m mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.mails = append(o.mails, m)
	}
	return o.err
}

// ids are those of the mails, in order of the alphabet.
func (o *outgoing) ids() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []string
	for _, m := range o.mails {
		ids = append(ids, m.id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func (o *outgoing) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// database is where the replicas of a test have their tables.
type database struct {
	pool *pgxpool.Pool
	cfg  postgres.Config
}

func newDatabase(t *testing.T) database {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a server; leave out -short")
	}
	cfg := postgres.Config{Schema: pgtest.Schema(t), AutoMigrate: true}
	shops := pgtest.Schema(t)
	return database{cfg: cfg, pool: pgtest.Pool(t, pgtest.With(func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = shops
	}))}
}

// replica is a shop whose scheduler runs if it is to, and which the end of the test stops.
func (d database) replica(t *testing.T, mails mailer, runs bool) *shop {
	t.Helper()
	store, err := postgres.New(t.Context(), d.pool, d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	s, err := xxljob.New(store, xxljob.Config{App: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	shop := &shop{pool: d.pool, store: store, mails: mails}
	if err := shop.open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if runs {
		if err := s.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return shop
}

// runs are those of the confirmation, with the order and the end that they had.
func (s *shop) runs(t *testing.T) (list []string) {
	t.Helper()
	runs, err := s.store.Runs(t.Context(), xxljob.RunFilter{JobID: s.confirmation})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		list = append(list, r.Param+" "+r.State.String()+" "+r.HandleMsg)
	}
	slices.Sort(list)
	return list
}

func (s *shop) requireRuns(t *testing.T, want ...string) {
	t.Helper()
	if got := s.runs(t); !slices.Equal(got, want) {
		t.Errorf("runs %q, want %q", got, want)
	}
}

// awaitRuns waits until all runs that there are have ended, one for each of so many orders.
func (s *shop) awaitRuns(t *testing.T, n int) {
	t.Helper()
	await.Until(t, "the runs have ended", func() bool {
		list := s.runs(t)
		return len(list) == n && !slices.ContainsFunc(list, func(r string) bool {
			return strings.Contains(r, " planned ") || strings.Contains(r, " started ")
		})
	})
}

var tea = order{ID: "4711", Email: "ada@example.com", Item: "tea"}

// What is committed is run once, however often the order is sent.
func TestCommit(t *testing.T) {
	t.Parallel()
	mails := &outgoing{}
	shop := newDatabase(t).replica(t, mails, true)
	for range 3 {
		if err := shop.take(t.Context(), tea); err != nil {
			t.Fatal(err)
		}
	}
	shop.awaitRuns(t, 1)
	if err := shop.take(t.Context(), tea); err != nil {
		t.Fatal(err)
	}
	shop.requireRuns(t, "4711 succeeded sent")
	if got := mails.ids(); got != "confirm-4711" {
		t.Errorf("mails: %q", got)
	}
	if got := shop.pieces(t, "tea"); got != 999 {
		t.Errorf("%d pieces are left", got)
	}
}

func (s *shop) pieces(t *testing.T, item string) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `select pieces from stock where item = $1`, item).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// What is rolled back was never planned, and the key is free for the next try.
func TestRollback(t *testing.T) {
	t.Parallel()
	mails := &outgoing{}
	shop := newDatabase(t).replica(t, mails, true)
	coffee := order{ID: "1", Email: "ada@example.com", Item: "coffee"}
	if err := shop.take(t.Context(), coffee); !errors.Is(err, errSoldOut) {
		t.Fatalf("got %v", err)
	}
	// The run of a later order is the proof that an earlier one would have been found.
	if err := shop.take(t.Context(), tea); err != nil {
		t.Fatal(err)
	}
	shop.awaitRuns(t, 1)
	shop.requireRuns(t, "4711 succeeded sent")

	if _, err := shop.pool.Exec(t.Context(), `update stock set pieces = 1`); err != nil {
		t.Fatal(err)
	}
	if err := shop.take(t.Context(), coffee); err != nil {
		t.Fatal(err)
	}
	shop.awaitRuns(t, 2)
	shop.requireRuns(t, "1 succeeded sent", "4711 succeeded sent")
}

// The process that has taken the order dies before it calls Wake: the poll of another
// replica finds the run, be it running or started later.
func TestCrashBeforeWake(t *testing.T) {
	t.Parallel()
	for name, runsAlready := range map[string]bool{"a replica runs": true, "a replica starts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, mails := newDatabase(t), &outgoing{}
			dies := d.replica(t, nil, false)
			other := dies
			if runsAlready {
				other = d.replica(t, mails, true)
			}
			err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error { return dies.write(t.Context(), tx, tea) })
			if err != nil {
				t.Fatal(err)
			}
			if !runsAlready {
				other = d.replica(t, mails, true)
			}
			other.awaitRuns(t, 1)
			other.requireRuns(t, "4711 succeeded sent")
			if got := mails.ids(); got != "confirm-4711" {
				t.Errorf("mails: %q", got)
			}
		})
	}
}

// A handler is called again: nothing is sent that was sent, and what was not is.
func TestConfirmAgain(t *testing.T) {
	t.Parallel()
	mails := &outgoing{err: errors.New("the mail server is away")}
	shop := newDatabase(t).replica(t, mails, true)
	if err := shop.take(t.Context(), tea); err != nil {
		t.Fatal(err)
	}
	shop.awaitRuns(t, 1)
	shop.requireRuns(t, `4711 failed confirmation of order "4711": the mail server is away`)

	mails.fail(nil)
	if _, err := shop.pool.Exec(t.Context(), `update orders set placed_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 orders", "0 orders"} {
		if got := xxljobtest.Work(t, t.Context(), shop.confirmMissing, xxljob.Task{}); got.Err != nil || got.Result != want {
			t.Errorf("got %q, %v, want %q", got.Result, got.Err, want)
		}
	}
	if result, err := shop.confirm(t.Context(), "4711"); result != "was sent before" || err != nil {
		t.Errorf("confirmed again: %q, %v", result, err)
	}
	if got := mails.ids(); got != "confirm-4711" {
		t.Errorf("mails: %q", got)
	}
	if _, err := shop.confirm(t.Context(), "none"); err == nil {
		t.Error("an order that is not there was confirmed")
	}
}

// The whole program, over HTTP.
func TestService(t *testing.T) {
	t.Parallel()
	d, mails := newDatabase(t), &outgoing{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln, d.pool, d.cfg, mails) }()
	base := "http://" + ln.Addr().String()
	await.Until(t, "the service is ready", func() bool { return call(t, "GET", base+"/readyz", "") == "200 ready\n" })
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/orders/1", "", "404 404 page not found\n"},
		{"PUT", "/orders/1", "{", "400 unexpected EOF\n"},
		{"PUT", "/orders/1", `{"item": "tea"}`, "400 want an id of at most 100 bytes, an email and an item\n"},
		{"PUT", "/orders/1", `{"email": "ada@example.com", "item": "coffee"}`, "409 order \"1\": sold out\n"},
		{"GET", "/orders/1", "", "404 404 page not found\n"},
		{"PUT", "/orders/1", `{"email": "ada@example.com", "item": "tea"}`, "202 "},
		{"PUT", "/orders/1", `{"email": "ada@example.com", "item": "tea"}`, "202 "},
	} {
		if got := call(t, c.method, base+c.path, c.body); got != c.want {
			t.Errorf("%s %s %s: got %q, want %q", c.method, c.path, c.body, got, c.want)
		}
	}
	await.Until(t, "the order is confirmed", func() bool { return call(t, "GET", base+"/orders/1", "") == "200 confirmed\n" })
	if got := mails.ids(); got != "confirm-1" {
		t.Errorf("mails: %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}

// call returns status and body.
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status[:4] + string(text)
}
