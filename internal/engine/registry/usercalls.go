package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/route"
)

// Calls of registries and routers of the user's that somebody waits for. Input: calls, by
// what they are about. Output: answers, or errors once RouteTimeout is over; a call that
// does not return is left behind, and is the only one about its matter.

// maxUserWrites is how many calls may be under way that change something: executors
// elsewhere register under any address, and a registry may hang for each.
const maxUserWrites = 1000

var (
	errUserHangs = errors.New("no answer, and an earlier call still hangs")
	errUserBusy  = errors.New("too many calls are under way")
)

// UserCalls are the calls that are under way. It is safe for concurrent use.
type UserCalls struct {
	registry core.Registry
	timeout  time.Duration
	panics   *guard.Log

	mu     sync.Mutex
	calls  map[userCallKey]*userCall // guarded by mu
	under  map[*userCall]bool        // guarded by mu: these, and calls of Router.Route
	writes int                       // guarded by mu: those that change something
	gone   string                    // guarded by mu: an address that is not registered any more
}

// userCallKey is what a call is about.
type userCallKey struct{ place, of, address string }

const registerCall = "Registry.Register"

// userCall is a call that may have several who wait for it.
type userCall struct {
	*guard.Future[[]string]
	until time.Time // when they give up
}

func NewUserCalls(cfg *core.Config, panics *guard.Log) *UserCalls {
	return &UserCalls{registry: cfg.Registry, timeout: cfg.Limits.RouteTimeout, panics: panics, calls: map[userCallKey]*userCall{}, under: map[*userCall]bool{}}
}

// Start makes a call that Stop is to wait for, in its time. returned is called when it has
// returned.
func (u *UserCalls) Start(ctx context.Context, place string, f func(context.Context) ([]string, error), returned func([]string, error)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.startLocked(ctx, place, f, returned)
}

func (u *UserCalls) startLocked(ctx context.Context, place string, f func(context.Context) ([]string, error), returned func([]string, error)) *userCall {
	ctx, cancel := context.WithTimeout(urgent.Unmark(ctx), u.timeout)
	c := &userCall{until: time.Now().Add(u.timeout)}
	u.under[c] = true
	c.Future = guard.Start(u.panics, place, func() ([]string, error) { return f(ctx) }, func(answer []string, err error) {
		cancel()
		returned(answer, err)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.under, c)
	})
	return c
}

// Wait waits for calls that are under way, each until its time is over, or ctx.
func (u *UserCalls) Wait(ctx context.Context) {
	u.mu.Lock()
	under := slices.Collect(maps.Keys(u.under))
	u.mu.Unlock()
	for _, c := range under {
		c.waitInTime(ctx)
	}
}

// waitInTime waits for a call until its time is over, or ctx, and reports whether it has returned.
func (c *userCall) waitInTime(ctx context.Context) bool {
	ctx, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	return c.Future.Wait(ctx)
}

// lookup asks the registry for an app's addresses.
func (u *UserCalls) lookup(ctx context.Context, app string) ([]string, error) {
	return u.do(ctx, userCallKey{place: "Registry.Lookup", of: app}, false, func(ctx context.Context) ([]string, error) {
		addrs, err := u.registry.Lookup(ctx, app)
		return slices.Clone(addrs), err // the list may be the registry's own
	})
}

func (u *UserCalls) register(ctx context.Context, app, address string) error {
	return u.write(ctx, userCallKey{registerCall, app, address}, func(ctx context.Context) error {
		return u.registry.Register(ctx, app, address)
	})
}

// withdraw takes apps of an address out of the registry for good: nothing is registered there any
// more, and what is being registered is waited for, in its time.
func (u *UserCalls) withdraw(ctx context.Context, apps []string, address string) (failed []error) {
	var under []*userCall
	u.mu.Lock()
	u.gone = address
	for _, app := range apps {
		if c := u.calls[userCallKey{registerCall, app, address}]; c != nil {
			under = append(under, c)
		}
	}
	u.mu.Unlock()
	for _, c := range under {
		c.waitInTime(ctx)
	}
	for _, app := range apps {
		failed = append(failed, u.deregister(ctx, app, address))
	}
	return failed
}

func (u *UserCalls) deregister(ctx context.Context, app, address string) error {
	return u.write(ctx, userCallKey{"Registry.Deregister", app, address}, func(ctx context.Context) error {
		return u.registry.Deregister(ctx, app, address)
	})
}

// Forget tells a router that a job is no more.
func (u *UserCalls) Forget(ctx context.Context, name string, router route.Forgetter, jobID int64) error {
	return u.write(ctx, userCallKey{"Router.Forget of " + name, strconv.FormatInt(jobID, 10), ""}, func(context.Context) error {
		router.Forget(jobID)
		return nil
	})
}

func (u *UserCalls) write(ctx context.Context, key userCallKey, f func(context.Context) error) error {
	_, err := u.do(ctx, key, true, func(ctx context.Context) ([]string, error) { return nil, f(ctx) })
	return err
}

// do waits for the call that is under way about a matter, or makes one.
func (u *UserCalls) do(ctx context.Context, key userCallKey, writes bool, f func(context.Context) ([]string, error)) ([]string, error) {
	c, err := u.begin(ctx, key, writes, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key.place, err)
	}
	hangs := !time.Now().Before(c.until)
	switch {
	case c.waitInTime(ctx):
		return c.Answer()
	case ctx.Err() != nil:
		err = ctx.Err()
	case hangs:
		err = fmt.Errorf("%w after %v", errUserHangs, u.timeout)
	default:
		err = fmt.Errorf("no answer within %v", u.timeout)
	}
	return nil, fmt.Errorf("%s: %w", key.place, err)
}

// begin returns the call that is under way, or a new one. It goes on when ctx ends, for
// others may wait for it too.
func (u *UserCalls) begin(ctx context.Context, key userCallKey, writes bool, f func(context.Context) ([]string, error)) (*userCall, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.calls[key]; c != nil {
		return c, nil
	}
	if key.place == registerCall && key.address == u.gone {
		return nil, errs.ErrStopped
	}
	if writes {
		if u.writes >= maxUserWrites {
			return nil, errUserBusy
		}
		u.writes++
	}
	c := u.startLocked(context.WithoutCancel(ctx), key.place, f, func([]string, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.calls, key)
		if writes {
			u.writes--
		}
	})
	u.calls[key] = c
	return c, nil
}
