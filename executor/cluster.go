package executor

// An admin of several nodes as one wire.Admin.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/wire"
)

// cluster is the nodes of one admin as one wire.Admin: a call goes to the node
// that worked last and, when that fails or refuses, to the others in turn. An
// error means that none has taken it.
type cluster struct {
	name  string
	nodes []node
	first atomic.Int32 // the node that worked last
}

// node is one process of an admin.
type node struct {
	addr  string
	admin wire.Admin
}

var _ wire.Admin = (*cluster)(nil)

// dialer makes a client for the admin at an address.
type dialer func(addr string, cfg wire.ClientConfig) (wire.Admin, error)

func dialHTTP(addr string, cfg wire.ClientConfig) (wire.Admin, error) {
	return wire.NewAdminClient(addr, cfg)
}

// dialAll makes the clients of all clusters. Nothing is connected yet.
func (c Config) dialAll(dial dialer) ([]*cluster, error) {
	var clusters []*cluster
	var faults []error
	for i, a := range c.Admins {
		cl := &cluster{name: a.Name}
		for k, addr := range a.Addresses {
			admin, err := dial(addr, wire.ClientConfig{Transport: c.Transport, App: c.App, Token: a.Token, Secrets: c.Tokens, Timeout: c.CallTimeout})
			if err != nil {
				faults = append(faults, fmt.Errorf("xxljob: executor: Config.Admins[%d].Addresses[%d]: %w", i, k, err))
			}
			cl.nodes = append(cl.nodes, node{addr, admin})
		}
		clusters = append(clusters, cl)
	}
	return clusters, errors.Join(faults...)
}

// Callback implements wire.Admin.
func (c *cluster) Callback(ctx context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	return c.ask(ctx, func(a wire.Admin) (wire.Return, error) { return a.Callback(ctx, results) })
}

// Registry implements wire.Admin. See register.
func (c *cluster) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	return c.register(ctx, nil, req)
}

// RegistryRemove implements wire.Admin.
func (c *cluster) RegistryRemove(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	return c.ask(ctx, func(a wire.Admin) (wire.Return, error) { return a.RegistryRemove(ctx, req) })
}

// ask calls one node after the other until one answers 200.
func (c *cluster) ask(ctx context.Context, call func(wire.Admin) (wire.Return, error)) (wire.Return, error) {
	failed := failures{admin: c.name, nodes: len(c.nodes)}
	first := int(c.first.Load())
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		n := c.nodes[at]
		ret, err := call(n.admin)
		if failed.add(n.addr, ret, err) {
			c.first.Store(int32(at))
			return ret, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return wire.Return{}, failed.err()
}

// errRefused is in an error where all nodes have answered, and refused. One that has not
// answered, or was not asked, may be back in a moment, whatever the others said.
var errRefused = errors.New("refuses")

// refusal is an error of a cluster of which a node, or what stands before it, has answered that it does not
// take what was sent. It may be about one result of a batch.
type refusal struct {
	error
	way int  // the code of an answer, or the status of HTTP that came instead; the greatest of all nodes'
	all bool // all nodes have answered so
	// doubtful is set where it may as well be about the address or the caller: it takes more of these until a
	// result is put aside.
	doubtful bool
}

func (r refusal) Unwrap() error { return r.error }

// refusalOf is the refusal that an error is, with way 0 if it is none.
func refusalOf(err error) (r refusal) {
	errors.As(err, &r)
	return r
}

// refusedWay is the status by which something between here and an admin refuses what a request
// says: firewalls have all kinds of them, and some answer 200 and a page. It is doubtful where the same
// is answered for an address, a path or a caller that is wrong: a redirect to a login, a 404. It is 0
// where there was no answer, or one that is about the moment: a limit of requests, an admin that starts or
// is away.
func refusedWay(err error) (way int, doubtful bool) {
	var call *wire.CallError
	if !errors.As(err, &call) {
		return 0, false
	}
	switch status := call.Status; {
	case status == 0 && call.Text != "":
		return http.StatusOK, false
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return 0, false
	case 300 <= status && status < 400, status == http.StatusUnauthorized, status == http.StatusNotFound, status == http.StatusProxyAuthRequired,
		status == http.StatusMisdirectedRequest, status == http.StatusUpgradeRequired:
		return status, true
	case 400 <= status && status <= http.StatusNotImplemented:
		return status, false
	}
	return 0, false
}

// failures are the answers of nodes none of which has taken a call.
type failures struct {
	admin    string
	nodes    int // how many there are
	all      []error
	refusals int  // by nodes themselves
	answers  int  // refusals, and those of what stands before nodes
	way      int  // the greatest of the answers
	doubtful bool // some of what stands before nodes may be about the address
}

// add takes in the answer of a node and reports whether it is a good one.
func (f *failures) add(addr string, ret wire.Return, err error) (ok bool) {
	switch {
	case err == nil && ret.OK():
		return true
	case err == nil:
		f.refusals++
		if !ret.Unauthorized() {
			f.answered(ret.Code)
		}
		err = fmt.Errorf("%s refuses: code %d: %s", addr, ret.Code, excerptOf(ret.Msg))
	default:
		if way, doubtful := refusedWay(err); way != 0 {
			f.answered(way)
			f.doubtful = f.doubtful || doubtful
		}
	}
	f.all = append(f.all, err)
	return false
}

func (f *failures) answered(way int) {
	f.answers++
	f.way = max(f.way, way, 1)
}

func (f *failures) err() error {
	err := fmt.Errorf("xxljob: executor: admin %q: %w", f.admin, errors.Join(f.all...))
	if f.refusals == len(f.all) && f.refusals >= f.nodes {
		err = fmt.Errorf("xxljob: executor: admin %q %w: %w", f.admin, errRefused, errors.Join(f.all...))
	}
	if f.answers == 0 {
		return err
	}
	return refusal{error: err, way: f.way, all: f.answers == len(f.all) && f.answers >= f.nodes, doubtful: f.doubtful}
}

// excerptOf is the beginning of a text from a peer, which may be long.
func excerptOf(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// askedWithin is how long it takes until all nodes have been asked, where none answers.
const askedWithin = 1500 * time.Millisecond

// answer is what a node has said to a registration.
type answer struct {
	at  int // which node
	ret wire.Return
	err error
}

// register asks one node after the other, like ask; but one that hangs does not keep the
// next one waiting for longer than its share of askedWithin. Every awayBackoff all are asked
// once more, beside the calls that are open: a node that is back never answers what it got
// while it was away, and one that is slow answers nothing sooner for being cut off. Once
// quit is closed no further node is asked. It returns when a node has taken the
// registration, or all that were asked have answered, and leaves no call behind: those that
// another node has forestalled are cancelled.
func (c *cluster) register(ctx context.Context, quit <-chan struct{}, req wire.RegistryRequest) (wire.Return, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	share := time.NewTicker(askedWithin / time.Duration(max(1, len(c.nodes)-1)))
	defer share.Stop()
	anew := time.NewTicker(awayBackoff)
	defer anew.Stop()
	failed := failures{admin: c.name, nodes: len(c.nodes)}
	answers := make(chan answer)
	first, asked, most, open := int(c.first.Load()), 0, len(c.nodes), 0
	next := func() {
		if asked == most || asked > 0 && (ctx.Err() != nil || closed(quit)) {
			return
		}
		at := (first + asked) % len(c.nodes)
		asked, open = asked+1, open+1
		go func() {
			ret, err := c.nodes[at].admin.Registry(ctx, req)
			answers <- answer{at, ret, err}
		}()
	}
	var taken *answer
	for next(); open > 0; {
		select {
		case a := <-answers:
			open--
			switch {
			case taken != nil: // it was forestalled
			case failed.add(c.nodes[a.at].addr, a.ret, a.err):
				taken = &a
				c.first.Store(int32(a.at))
				cancel()
			default:
				next()
			}
		case <-share.C:
			next()
		case <-anew.C:
			most += len(c.nodes)
			next()
		}
	}
	if taken != nil {
		return taken.ret, nil
	}
	return wire.Return{}, failed.err()
}

// closed reports whether a channel is closed; one that is nil is not.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
