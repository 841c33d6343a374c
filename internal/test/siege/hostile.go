//go:build unix

package siege

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// hostileConfig is what the hostile app is told.
type hostileConfig struct {
	Admin   string   `json:"admin"`
	Token   string   `json:"token"`
	Seed    uint64   `json:"seed"`
	Attacks []string `json:"attacks"`
	Rates   Rates    `json:"rates"`
	Lost    []int64  `json:"lost"`
	// Console is where the console is, Viewer the secret of a session there, Heavy a run that is
	// dear to show.
	Console string `json:"console"`
	Viewer  string `json:"viewer"`
	Heavy   int64  `json:"heavy"`
}

// hostile is an app that has a valid token and means no good.
type hostile struct {
	cfg    hostileConfig
	own    string // the address where its executors are: any path leads to them
	held   held
	counts counts
	pages  atomic.Int64 // requests to the console, so that they differ
}

// Hostile is the process of the hostile app: it attacks from orderBegin on until its input
// ends.
func Hostile(ctx context.Context, in io.Reader, out io.Writer) error {
	h := &hostile{}
	p, err := newParent(in, out, &h.cfg)
	if err != nil {
		return err
	}
	if err := h.listen(); err != nil {
		return err
	}
	if said := h.post(ctx, http.DefaultClient, "registry", h.registration("executor")); said != saidOK {
		return fmt.Errorf("the registration was answered: %s", said)
	}
	ctx, stop := context.WithCancel(ctx)
	var attacks sync.WaitGroup
	p.tell(message{Kind: kindReady})
	err = p.obey(func(string) error {
		h.attack(ctx, &attacks)
		attacks.Go(func() { h.tell(ctx, p) })
		return nil
	})
	stop()
	attacks.Wait()
	return err
}

// attack begins all attacks that are asked for.
func (h *hostile) attack(ctx context.Context, g *sync.WaitGroup) {
	for name, do := range map[string]func(context.Context){
		attackRepeats: h.repeats, attackFlood: h.flood, attackRegistrations: h.register, attackDribble: h.dribble,
		attackForms: h.slowForms, attackPages: h.heavyPages, attackSearches: h.searches, attackLogins: h.logins, attackTokens: h.guesses,
	} {
		if slices.Contains(h.cfg.Attacks, name) {
			g.Go(func() { do(ctx) })
		}
	}
	g.Go(func() {
		every(ctx, 20*time.Second, func() { h.post(ctx, http.DefaultClient, "registry", h.registration("executor")) })
	})
}

// tell says each second what has been done.
func (h *hostile) tell(ctx context.Context, p *parent) {
	every(ctx, time.Second, func() { p.tell(message{Kind: kindCounts, Counts: h.counts.all()}) })
}

// rand is the source of an attack's choices, the same for the same seed.
func (h *hostile) rand(stream string, i int) *rand.Rand {
	n := uint64(i)
	for _, c := range stream {
		n = n*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(h.cfg.Seed, n))
}

// listen serves the executors of the hostile app: they accept what comes, and report as
// they like.
func (h *hostile) listen() error {
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{hostileApp: {h.cfg.Token}}})
	if err != nil {
		return err
	}
	handler, err := wire.NewExecutorHandler(&h.held, wire.HandlerConfig{Authorize: keys.Authorize})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.own = "http://" + l.Addr().String() + "/"
	go func() { _ = http.Serve(l, handler) }() // ends with the process
	return nil
}

func (h *hostile) registration(name string) []byte {
	return wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: hostileApp, RegistryValue: h.own + name + "/"}.Encode(nil)
}

// What a request of the hostile app was answered.
const (
	saidOK      = "answered 200"
	saidRefused = "refused"
	saidNothing = "no answer"
)

// post sends a request and returns what was said.
func (h *hostile) post(ctx context.Context, c *http.Client, endpoint string, body []byte) (said string) {
	return h.postWith(ctx, c, h.cfg.Token, endpoint, body)
}

// postWith is post with whatever token.
func (h *hostile) postWith(ctx context.Context, c *http.Client, token, endpoint string, body []byte) (said string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.Admin+"/api/"+endpoint, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set(wire.HeaderToken, token)
	req.Header.Set(wire.HeaderApp, hostileApp)
	resp, err := c.Do(req)
	if err != nil {
		return saidNothing
	}
	defer resp.Body.Close()
	return saidIn(resp)
}

// saidIn reads an answer.
func saidIn(resp *http.Response) string {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var ret wire.Return
	switch {
	case err != nil:
		return saidNothing
	case resp.StatusCode != http.StatusOK || json.Unmarshal(text, &ret) != nil || !ret.OK():
		return saidRefused
	}
	return saidOK
}

// held are the runs of the hostile app that were sent to it and are not ended: it is its
// executor. It is safe for concurrent use.
type held struct {
	mu  sync.Mutex
	ids []int64 // guarded by mu: the oldest first
}

// heldMost is how many runs are left running.
const heldMost = 100

// next is the oldest run that is not left running, zero where there is none.
func (h *held) next() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ids) <= heldMost {
		return 0
	}
	id := h.ids[0]
	h.ids = h.ids[1:]
	return id
}

func (h *held) Run(_ context.Context, req wire.TriggerRequest) (wire.Return, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = append(h.ids, req.LogID)
	return wire.Success(), nil
}

func (h *held) Beat(context.Context) (wire.Return, error) { return wire.Success(), nil }

func (h *held) IdleBeat(context.Context, wire.IdleBeatRequest) (wire.Return, error) {
	return wire.Failf(wire.MsgBusy), nil
}

func (h *held) Kill(context.Context, wire.KillRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (h *held) Log(context.Context, wire.LogRequest) (wire.LogReturn, error) {
	return wire.LogReturn{Code: wire.CodeFail, Msg: wire.MsgNoLog}, nil
}

// counts is what has been done, by name. It is safe for concurrent use.
type counts struct {
	mu sync.Mutex
	n  map[string]int64 // guarded by mu
}

func (c *counts) add(name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[name] += n
}

func (c *counts) all() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]int64, len(c.n))
	for name, n := range c.n {
		all[name] = n
	}
	return all
}
