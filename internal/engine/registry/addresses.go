package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What is known of the addresses of apps, and for how long it is good.

// Addresses knows which addresses may run a handler of an app.
type Addresses struct {
	s        *core.Core
	Attached *AttachedSet
	Remotes  *Remotes
	users    *UserCalls                  // of a registry of the user's
	Register func(context.Context) error // registers this node's executors there
	Memory   *Memory
	turns    turns // of those who ask about an app
}

// NewAddresses makes it; register registers this node's executors in a registry of the user's.
func NewAddresses(s *core.Core, attached *AttachedSet, remotes *Remotes, users *UserCalls, register func(context.Context) error, memory *Memory) *Addresses {
	return &Addresses{s: s, Attached: attached, Remotes: remotes, users: users, Register: register, Memory: memory}
}

// BookKeyOf is what a job's addresses go by.
func BookKeyOf(job *store.Job) BookKey { return BookKey{job.App, job.Handler, job.GlueType} }

// IsBean reports whether it is a handler that is meant, and no script.
func (k BookKey) IsBean() bool { return k.Glue == store.GlueBean || k.Glue == "" }

// KnewLately reports whether an address is one of the app's, or was one a moment ago: an
// executor that has said good-bye lets its runs end, and answers questions about them.
func (b *Addresses) KnewLately(ctx context.Context, app, address string) (bool, error) {
	if b.Memory.hadLately(app, address) {
		return true, nil
	}
	return b.Knows(ctx, app, address)
}

// Lookup returns the sorted addresses for a job's handler; where there are none,
// why says so in XXL-JOB's words. Addresses given by a trigger take the place of
// the app's.
func (b *Addresses) Lookup(ctx context.Context, job *store.Job, given []string) (addrs []string, why string, err error) {
	key := BookKeyOf(job)
	if len(given) > 0 {
		return b.lookupGiven(ctx, key, given)
	}
	if e, cached := b.Memory.Cached(key); cached {
		return e.Addrs, "", nil
	}
	now, version := time.Now(), b.Memory.AsOf()
	e, err := loop.Call(ctx, func(ctx context.Context) (bookEntry, error) { return b.read(ctx, key) })
	if err == nil && len(e.Addrs) == 0 && b.s.Cfg.AsksRegistry(key.App) && b.Attached.Unregistered(key.App) {
		// A registry of the user's has not heard of this node's executor yet; the
		// run would be refused for good.
		e, err = loop.Call(ctx, func(ctx context.Context) (bookEntry, error) {
			if err := b.Register(ctx); err != nil {
				return bookEntry{}, err
			}
			return b.read(ctx, key)
		})
	}
	if err != nil {
		return nil, "", err
	}
	e.Read = now
	b.Memory.Keep(key, e, version)
	return e.Addrs, e.None, nil
}

// lookupGiven is lookup for addresses that a trigger has given. They are among the
// app's, in whatever spelling: a token goes nowhere else.
func (b *Addresses) lookupGiven(ctx context.Context, key BookKey, given []string) ([]string, string, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, key.App) })
	if err != nil {
		return nil, "", err
	}
	e := b.ChooseGiven(key, all, given)
	return e.Addrs, e.None, nil
}

// all are the addresses of an app, those of other nodes included.
func (b *Addresses) all(ctx context.Context, app string) ([]string, error) {
	a, err := b.Ask(ctx, app)
	return b.AllOf(app, a), err
}

// Knows reports whether an address is one of the app's at this moment: others are not
// called.
func (b *Addresses) Knows(ctx context.Context, app, address string) (bool, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, app) })
	return containsSpelling(all, address), err
}

func (b *Addresses) read(ctx context.Context, key BookKey) (bookEntry, error) {
	a, err := b.Ask(ctx, key.App)
	if err != nil {
		return bookEntry{}, err
	}
	e := b.Choose(key, b.AllOf(key.App, a))
	if a.Stale != nil && len(e.Addrs) == 0 {
		return bookEntry{}, a.Stale // an old answer may help, and not refuse a run for good
	}
	return e, nil
}

// Unserved says of jobs of one app, by what their addresses go by, why nobody serves
// them; others are not in the answer. The app's addresses are read once.
func (b *Addresses) Unserved(ctx context.Context, app string, jobs []store.Job) (map[BookKey]string, error) {
	read := func(ctx context.Context) (map[BookKey]string, error) {
		a, err := b.Ask(ctx, app)
		if err != nil {
			return nil, err
		}
		why, all, done := map[BookKey]string{}, b.AllOf(app, a), map[BookKey]bool{}
		for i := range jobs {
			key := BookKeyOf(&jobs[i])
			if done[key] {
				continue
			}
			done[key] = true
			if e := b.Choose(key, slices.Clone(all)); len(e.Addrs) == 0 {
				why[key] = e.None
			}
		}
		if a.Stale != nil && len(why) > 0 {
			return nil, a.Stale
		}
		return why, nil
	}
	why, err := loop.Call(ctx, read)
	if err == nil && len(why) > 0 && b.s.Cfg.AsksRegistry(app) && b.Attached.Unregistered(app) {
		if err := b.Register(ctx); err != nil {
			return nil, err
		}
		return loop.Call(ctx, read)
	}
	return why, err
}

// CalledAt returns the executor that a run was sent to, while its address is one of the
// app's, or was a moment ago. It is for questions about the run and for its end; a run is
// sent to addresses of the present only.
func (b *Addresses) CalledAt(ctx context.Context, r store.Run) (*remote, error) {
	known, err := b.KnewLately(ctx, r.App, r.Address)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%s is not an address of app %s any more", r.Address, r.App)
	}
	return b.Remotes.Get(r.App, r.Address)
}

// IsShared reports whether the address of a run stands for several processes: what one of them says of
// the run tells nothing about the others.
func (b *Addresses) IsShared(r store.Run) bool {
	_, left := b.Memory.Liveness.Shared(LivenessKey(r.App, r.Address), time.Now())
	return left > 0
}

// What the store and a registry say of an app.

// Ask asks the store and the registry. Where they do not answer, the last answer
// serves for as long as a heartbeat does: a table that somebody has locked must not
// keep runs from executors that are there.
//
// One asks about an app at a time, and who waits for that finds the answer: an app may have ten
// thousand addresses, and many runs that somebody asks about at the same moment.
func (b *Addresses) Ask(ctx context.Context, app string) (Answer, error) {
	came := time.Now()
	last, known, _, _ := b.Memory.recall(app, came)
	if known && last.fresh && came.Sub(last.at) < AddressTTL && len(last.Addrs) > 0 {
		return last, nil // for another handler of the app
	}
	give, err := b.turns.take(ctx, app)
	if err != nil {
		return Answer{}, err
	}
	defer give()
	now := time.Now()
	last, known, version, stale := b.Memory.recall(app, now)
	if known && last.fresh && last.at.After(came) {
		return last, nil // of one who has begun to ask since
	}
	last.Stale = stale
	known = known && now.Sub(last.at) < b.s.Cfg.Cluster.Dead
	if known && last.Stale != nil {
		return last, nil
	}
	quick, cancel := ctx, context.CancelFunc(func() {})
	if known {
		patience := addressPatience
		if b.s.Cfg.AsksRegistry(app) {
			patience += b.s.Cfg.Limits.RouteTimeout
		}
		quick, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	a, silent, err := b.askNow(quick, app)
	if err == nil {
		a.at = now
		b.Memory.heard(app, a, version)
		return a, nil
	}
	if !known || ctx.Err() != nil {
		return Answer{}, err
	}
	b.s.Logger.Warn("xxljob: address lookup failed; using the last known addresses", "app", app, "age", now.Sub(last.at), "error", err)
	b.Memory.noAnswer(silent, err)
	last.Stale = err
	return last, nil
}

// askNow says with an error who is silent: all apps are in the same tables of the store,
// but a registry of the user's may fail for one of them.
func (b *Addresses) askNow(ctx context.Context, app string) (a Answer, silent string, err error) {
	group, err := b.s.Store.Group(ctx, app)
	switch {
	case err == nil && group.Manual:
		return Answer{Addrs: group.Addresses, Manual: true}, "", nil
	case err != nil && !errs.IsNotFound(err):
		return Answer{}, "", err
	}
	if b.s.Cfg.AsksRegistry(app) {
		addrs, err := b.users.lookup(ctx, app)
		return Answer{Addrs: addrs}, app, err
	}
	// Where the store's clock has just stepped ahead, its registrations look older than they are.
	regs, err := b.s.Store.Addresses(ctx, app, b.s.Cfg.Cluster.Dead+b.s.Clock.Leapt(b.s.Cfg.Cluster.Dead))
	return registered(regs, b.s.Clock.Now()), "", err
}

// registered is the answer that registrations are.
func registered(regs []store.Registration, now time.Time) Answer {
	a := Answer{Addrs: make([]string, 0, len(regs)), boots: map[string]string{}, ages: make(map[string]time.Duration, len(regs)), former: map[string]formerBoot{}}
	for _, r := range regs {
		a.Addrs = append(a.Addrs, r.Address)
		a.ages[r.Address] = max(now.Sub(r.Updated), 0)
		if !r.FormerSeen.IsZero() {
			a.former[r.Address] = formerBoot{r.FormerBootID, max(now.Sub(r.FormerSeen), 0)}
		}
		if r.BootID != "" && slices.Contains(r.Capabilities, wire.CapRepeat) {
			a.boots[r.Address] = r.BootID
		}
	}
	return a
}

// Which addresses of an app a job may go to.

// Choose leaves out addresses that cannot run the handler, as far as that is known:
// of a remote executor it is not.
func (b *Addresses) Choose(key BookKey, all []string) bookEntry {
	var e bookEntry
	able, hasApp := b.able(key, all)
	bean := key.IsBean()
	e.Addrs = oneSpelling(b.s.Leases.Undoubted(able))
	switch {
	case len(e.Addrs) > 0:
	case hasApp && !bean:
		e.None = fmt.Sprintf(wire.MsgGlueType, key.Glue)
	case hasApp:
		e.None = fmt.Sprintf(wire.MsgHandlerNotFound, key.Handler)
	case len(all) > 0:
		e.None = unreachable(key.App)
	default:
		e.None = noExecutor(key.App)
	}
	return e
}

func noExecutor(app string) string { return "no address: app " + app + " has no live executor" }

func unreachable(app string) string {
	return "none of the addresses of app " + app + " can be reached from here"
}

// IsNoExecutor reports whether Lookup has said of an app that it has no executor at all, and not
// that none has a handler.
func IsNoExecutor(app, why string) bool { return why == noExecutor(app) }

// NobodyFor is what is seen where Lookup has found no address for a job, which is why.
func NobodyFor(job *store.Job, why string) store.Seen {
	switch why {
	case noExecutor(job.App):
		return store.Seen{What: store.SeenNobodyRefused}
	case fmt.Sprintf(wire.MsgHandlerNotFound, job.Handler):
		return store.Seen{What: store.SeenNoHandler, Names: job.Handler}
	case fmt.Sprintf(wire.MsgGlueType, job.GlueType):
		return store.Seen{What: store.SeenNoGlue, Names: job.GlueType}
	case unreachable(job.App):
		return store.Seen{What: store.SeenUnreachable}
	}
	return store.Seen{}
}

// HasRemote reports whether an app has an executor elsewhere, which does not say what its handlers are.
func (b *Addresses) HasRemote(ctx context.Context, app string) (bool, error) {
	a, err := loop.Call(ctx, func(ctx context.Context) (Answer, error) { return b.Ask(ctx, app) })
	return slices.ContainsFunc(a.Addrs, store.IsRemote), err
}

// able are the addresses that can run the handler, sorted, those of doubted nodes
// included, and whether a node is there that has the app.
func (b *Addresses) able(key BookKey, all []string) (addrs []string, hasApp bool) {
	for _, a := range all {
		inc, local := store.LocalIncarnation(a)
		if !local {
			if b.callable(key.App, a) {
				addrs = append(addrs, a)
			}
			continue
		}
		app, handler := b.s.Leases.Serves(inc, key.App, key.Handler)
		hasApp = hasApp || app
		if handler && key.IsBean() {
			addrs = append(addrs, a)
		}
	}
	slices.Sort(addrs)
	return addrs, hasApp
}

// callable reports whether an address is one that can be called. One that is not may
// come from a registry of the user's, or from before such were refused.
func (b *Addresses) callable(app, address string) bool {
	if strings.ContainsFunc(address, errs.NotPlain) {
		return false // it would be shown wherever its runs are
	}
	return b.Remotes.IsCallable(app, address)
}

// ChooseGiven is choose among the addresses that a trigger has given.
func (b *Addresses) ChooseGiven(key BookKey, all, given []string) bookEntry {
	wanted, unknown := chosenFrom(all, given)
	e := b.Choose(key, wanted)
	if len(unknown) > 0 && len(e.Addrs) == 0 {
		e.None = fmt.Sprintf("none of the addresses of app %s can be reached from here: it has no %s", key.App, errs.Shorten(strings.Join(unknown, ", "), 500))
	}
	return e
}

func (b *Addresses) AllOf(app string, a Answer) []string {
	if a.Manual || b.s.Cfg.AsksRegistry(app) {
		return a.Addrs
	}
	return append(slices.Clone(a.Addrs), b.s.Leases.LocalAddresses(app)...)
}

// Possible are the addresses that a run of a job may be sent to, sorted: those of nodes
// that are doubted too, for they may be back when it is sent.
func (b *Addresses) Possible(ctx context.Context, job *store.Job, given []string) ([]string, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, job.App) })
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		all, _ = chosenFrom(all, given)
	}
	able, _ := b.able(BookKeyOf(job), all)
	return oneSpelling(able), nil
}
