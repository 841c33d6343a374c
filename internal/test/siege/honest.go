//go:build unix

package siege

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
	"github.com/xxljob/xxljob/wire"
)

const (
	// javaPatience is how long a Java executor waits for an answer.
	javaPatience = 3 * time.Second
	// javaPage is how many results it sends at a time.
	javaPage = 50
	// retryAfter is when a page is sent again. Java waits for 30 s, which would hide how
	// long the scheduler would have had it wait.
	retryAfter = time.Second
	// workMost is how long a run takes at most.
	workMost = 300 * time.Millisecond
	// guestEvery is how often an executor comes that goes after guestFor.
	guestEvery, guestFor = 500 * time.Millisecond, 5 * time.Second
)

// honest is an app with many executors, which register, run and report as those of
// XXL-JOB's Java library do. It keeps what it sees.
type honest struct {
	cfg    Config
	token  string
	admin  string
	base   string // the address below which the executors are
	began  time.Time
	server *http.Server
	client *http.Client

	console, page string // where the console is, and a page of a job
	admins        string // the secret of the admin's session
	loads         sync.WaitGroup

	beats    judge.Series // heartbeats of executors that are known
	guests   judge.Series // the first registration of an address, and its end
	attempts judge.Series // each sending of a page of results
	results  judge.Series // each result, from the end of its run until it is acknowledged
	seen     judge.Series // each page of the console
	starts   judge.Series // from when a run was due until it was sent here

	mu       sync.Mutex
	accepted map[int64]int // guarded by mu: how often each run was sent here
	open     int           // guarded by mu: results that are not acknowledged
}

// newHonest serves the executors of the honest app.
func newHonest(cfg Config, token, admin string, began time.Time) (*honest, error) {
	h := &honest{cfg: cfg, token: token, admin: admin, began: began, accepted: map[int64]int{}}
	h.client = &http.Client{Timeout: javaPatience, Transport: &http.Transport{MaxIdleConnsPerHost: 4 * cfg.Executors}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.base = "http://" + l.Addr().String() + "/"
	h.server = &http.Server{}
	return h, h.serve(l)
}

// serve gives each executor a path of its own. Guests are at the paths of the others.
func (h *honest) serve(l net.Listener) error {
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{honestApp: {h.token}}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for i := range h.cfg.Executors {
		e := &honestExecutor{honest: h, rand: rand.New(rand.NewPCG(h.cfg.Seed, uint64(i))), done: make(chan finished, 10_000)}
		handler, err := wire.NewExecutorHandler(e, wire.HandlerConfig{Authorize: keys.Authorize})
		if err != nil {
			return err
		}
		mux.Handle(fmt.Sprintf("/%d/", i), handler)
		go e.report(context.Background()) // ends with the process
	}
	h.server.Handler = mux
	go func() { _ = h.server.Serve(l) }()
	return nil
}

// register has all executors register, as they do when they start.
func (h *honest) register(ctx context.Context) error {
	for i := range h.cfg.Executors {
		if outcome := h.post(ctx, "registry", h.registration(fmt.Sprintf("%d/", i))); outcome != judge.OK {
			return fmt.Errorf("siege: executor %d could not register", i)
		}
	}
	return nil
}

// beat sends heartbeats until ctx ends, each at its time, whatever became of the one
// before; guests come and go meanwhile.
func (h *honest) beat(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	send := func(s *judge.Series, due time.Time, endpoint, path string) {
		all.Go(func() {
			outcome := h.post(context.WithoutCancel(ctx), endpoint, h.registration(path))
			s.Add(judge.Sample{From: due.Sub(h.began), To: time.Since(h.began), Outcome: outcome})
		})
	}
	for i := range h.cfg.Executors {
		first := h.cfg.Beat * time.Duration(i) / time.Duration(h.cfg.Executors)
		all.Go(func() {
			h.atEach(ctx, first, h.cfg.Beat, func(due time.Time) { send(&h.beats, due, "registry", fmt.Sprintf("%d/", i)) })
		})
	}
	var guest atomic.Int64
	all.Go(func() {
		h.atEach(ctx, 0, guestEvery, func(due time.Time) {
			n := guest.Add(1)
			path := fmt.Sprintf("%d/guest/%d/", n%int64(h.cfg.Executors), n)
			send(&h.guests, due, "registry", path)
			all.Go(func() {
				pause(ctx, guestFor)
				send(&h.guests, time.Now(), "registryRemove", path)
			})
		})
	})
}

// atEach calls f at each instant of a period until ctx ends, also for those that it is
// late for: who measures must not leave out what was in the way.
func (h *honest) atEach(ctx context.Context, first, period time.Duration, f func(due time.Time)) {
	for due := time.Now().Add(first); pause(ctx, time.Until(due)); due = due.Add(period) {
		f(due)
	}
}

func (h *honest) registration(path string) []byte {
	return wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: honestApp, RegistryValue: h.base + path}.Encode(nil)
}

// post sends a request as Java does.
func (h *honest) post(ctx context.Context, endpoint string, body []byte) judge.Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.admin+"/api/"+endpoint, bytes.NewReader(body))
	if err != nil {
		return judge.Broken
	}
	req.Header.Set(wire.HeaderToken, h.token)
	req.Header.Set("User-Agent", "Java/17.0.2")
	req.Header.Set("Accept-Charset", "application/json;charset=UTF-8")
	req.Header.Set("Content-Type", "application/json;charset=UTF-8")
	resp, err := h.client.Do(req)
	if err != nil {
		return broken(err)
	}
	defer resp.Body.Close()
	switch saidIn(resp) {
	case saidOK:
		return judge.OK
	case saidRefused:
		return judge.Refused
	}
	return judge.Broken
}

// broken tells a request that was given up from one whose connection failed.
func broken(err error) judge.Outcome {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return judge.TimedOut
	}
	return judge.Broken
}

// pending is how many results are not acknowledged.
func (h *honest) pending() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// sent returns the runs that were sent here, and how many of them more than once.
func (h *honest) sent() (ids []int64, twice int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.accepted {
		ids = append(ids, id)
		if n > 1 {
			twice++
		}
	}
	return ids, twice
}
