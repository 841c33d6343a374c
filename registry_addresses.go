package xxljob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// What is known of the addresses of apps, and for how long it is good.

// addressBook knows which addresses may run a handler of an app.
type addressBook struct {
	s        *shared
	attached *attachedSet
	remotes  *remotes
	users    *userCalls                  // of a registry of the user's
	register func(context.Context) error // registers this node's executors there
	memory   *addressMemory
}

// sameAddress compares two addresses whatever their spelling.
func sameAddress(a, b string) bool { return a == b || wire.NormalAddress(a) == wire.NormalAddress(b) }

// bookKeyOf is what a job's addresses go by.
func bookKeyOf(job *store.Job) bookKey { return bookKey{job.App, job.Handler, job.GlueType} }

func (k bookKey) isBean() bool { return k.glue == store.GlueBean || k.glue == "" }

// knewLately reports whether an address is one of the app's, or was one a moment ago: an
// executor that has said good-bye lets its runs end, and answers questions about them.
func (b *addressBook) knewLately(ctx context.Context, app, address string) (bool, error) {
	if b.memory.hadLately(app, address) {
		return true, nil
	}
	return b.knows(ctx, app, address)
}

// lookup returns the sorted addresses for a job's handler; where there are none,
// why says so in XXL-JOB's words. Addresses given by a trigger take the place of
// the app's.
func (b *addressBook) lookup(ctx context.Context, job *store.Job, given []string) (addrs []string, why string, err error) {
	key := bookKeyOf(job)
	if len(given) > 0 {
		return b.lookupGiven(ctx, key, given)
	}
	if e, cached := b.memory.cached(key); cached {
		return e.addrs, "", nil
	}
	now, version := time.Now(), b.memory.asOf()
	e, err := loop.Call(ctx, func(ctx context.Context) (bookEntry, error) { return b.read(ctx, key) })
	if err == nil && len(e.addrs) == 0 && b.s.cfg.Registry != nil && b.attached.unregistered(key.app) {
		// A registry of the user's has not heard of this node's executor yet; the
		// run would be refused for good.
		e, err = loop.Call(ctx, func(ctx context.Context) (bookEntry, error) {
			if err := b.register(ctx); err != nil {
				return bookEntry{}, err
			}
			return b.read(ctx, key)
		})
	}
	if err != nil {
		return nil, "", err
	}
	e.read = now
	b.memory.keep(key, e, version)
	return e.addrs, e.none, nil
}

// lookupGiven is lookup for addresses that a trigger has given. They are among the
// app's, in whatever spelling: a token goes nowhere else.
func (b *addressBook) lookupGiven(ctx context.Context, key bookKey, given []string) ([]string, string, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, key.app) })
	if err != nil {
		return nil, "", err
	}
	e := b.chooseGiven(key, all, given)
	return e.addrs, e.none, nil
}

// all are the addresses of an app, those of other nodes included.
func (b *addressBook) all(ctx context.Context, app string) ([]string, error) {
	a, err := b.ask(ctx, app)
	return b.allOf(app, a), err
}

// knows reports whether an address is one of the app's at this moment: others are not
// called.
func (b *addressBook) knows(ctx context.Context, app, address string) (bool, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, app) })
	return slices.ContainsFunc(all, func(a string) bool { return sameAddress(a, address) }), err
}

func (b *addressBook) read(ctx context.Context, key bookKey) (bookEntry, error) {
	a, err := b.ask(ctx, key.app)
	if err != nil {
		return bookEntry{}, err
	}
	e := b.choose(key, b.allOf(key.app, a))
	if a.stale != nil && len(e.addrs) == 0 {
		return bookEntry{}, a.stale // an old answer may help, and not refuse a run for good
	}
	return e, nil
}

// unserved says of jobs of one app, by what their addresses go by, why nobody serves
// them; others are not in the answer. The app's addresses are read once.
func (b *addressBook) unserved(ctx context.Context, app string, jobs []store.Job) (map[bookKey]string, error) {
	read := func(ctx context.Context) (map[bookKey]string, error) {
		a, err := b.ask(ctx, app)
		if err != nil {
			return nil, err
		}
		why, all, done := map[bookKey]string{}, b.allOf(app, a), map[bookKey]bool{}
		for i := range jobs {
			key := bookKeyOf(&jobs[i])
			if done[key] {
				continue
			}
			done[key] = true
			if e := b.choose(key, slices.Clone(all)); len(e.addrs) == 0 {
				why[key] = e.none
			}
		}
		if a.stale != nil && len(why) > 0 {
			return nil, a.stale
		}
		return why, nil
	}
	why, err := loop.Call(ctx, read)
	if err == nil && len(why) > 0 && b.s.cfg.Registry != nil && b.attached.unregistered(app) {
		if err := b.register(ctx); err != nil {
			return nil, err
		}
		return loop.Call(ctx, read)
	}
	return why, err
}

// calledAt returns the executor that a run was sent to, while its address is one of the
// app's, or was a moment ago. It is for questions about the run and for its end; a run is
// sent to addresses of the present only.
func (b *addressBook) calledAt(ctx context.Context, r store.Run) (*remote, error) {
	known, err := b.knewLately(ctx, r.App, r.Address)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%s is not an address of app %s any more", r.Address, r.App)
	}
	return b.remotes.get(r.App, r.Address)
}

// What the store and a registry say of an app.

// ask asks the store and the registry. Where they do not answer, the last answer
// serves for as long as a heartbeat does: a table that somebody has locked must not
// keep runs from executors that are there.
func (b *addressBook) ask(ctx context.Context, app string) (answer, error) {
	now := time.Now()
	last, known, version, stale := b.memory.recall(app, now)
	if known && last.fresh && now.Sub(last.at) < addressTTL && len(last.addrs) > 0 {
		return last, nil // for another handler of the app
	}
	last.stale = stale
	known = known && now.Sub(last.at) < b.s.cfg.Cluster.Dead
	if known && last.stale != nil {
		return last, nil
	}
	quick, cancel := ctx, context.CancelFunc(func() {})
	if known {
		patience := addressPatience
		if b.s.cfg.Registry != nil {
			patience += b.s.cfg.Limits.RouteTimeout
		}
		quick, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	a, silent, err := b.askNow(quick, app)
	if err == nil {
		a.at = now
		b.memory.heard(app, a, version)
		return a, nil
	}
	if !known || ctx.Err() != nil {
		return answer{}, err
	}
	b.s.log.Warn("xxljob: address lookup failed; using the last known addresses", "app", app, "age", now.Sub(last.at), "error", err)
	b.memory.noAnswer(silent, err)
	last.stale = err
	return last, nil
}

// askNow says with an error who is silent: all apps are in the same tables of the store,
// but a registry of the user's may fail for one of them.
func (b *addressBook) askNow(ctx context.Context, app string) (a answer, silent string, err error) {
	group, err := b.s.store.Group(ctx, app)
	switch {
	case err == nil && group.Manual:
		return answer{addrs: group.Addresses, manual: true}, "", nil
	case err != nil && !errs.IsNotFound(err):
		return answer{}, "", err
	}
	if b.s.cfg.Registry != nil {
		addrs, err := b.users.lookup(ctx, app)
		return answer{addrs: addrs}, app, err
	}
	regs, err := b.s.store.Addresses(ctx, app, b.s.cfg.Cluster.Dead)
	return registered(regs, b.s.clock.now()), "", err
}

// registered is the answer that registrations are.
func registered(regs []store.Registration, now time.Time) answer {
	a := answer{addrs: make([]string, 0, len(regs)), boots: map[string]string{}, ages: make(map[string]time.Duration, len(regs)), former: map[string]formerBoot{}}
	for _, r := range regs {
		a.addrs = append(a.addrs, r.Address)
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

// choose leaves out addresses that cannot run the handler, as far as that is known:
// of a remote executor it is not.
func (b *addressBook) choose(key bookKey, all []string) bookEntry {
	var e bookEntry
	able, hasApp := b.able(key, all)
	bean := key.isBean()
	e.addrs = withoutTwins(b.s.leases.undoubted(able))
	switch {
	case len(e.addrs) > 0:
	case hasApp && !bean:
		e.none = fmt.Sprintf(wire.MsgGlueType, key.glue)
	case hasApp:
		e.none = fmt.Sprintf(wire.MsgHandlerNotFound, key.handler)
	case len(all) > 0:
		e.none = "none of the addresses of app " + key.app + " can be reached from here"
	default:
		e.none = "no address: app " + key.app + " has no live executor"
	}
	return e
}

// able are the addresses that can run the handler, sorted, those of doubted nodes
// included, and whether a node is there that has the app.
func (b *addressBook) able(key bookKey, all []string) (addrs []string, hasApp bool) {
	for _, a := range all {
		inc, local := store.LocalIncarnation(a)
		if !local {
			if b.callable(key.app, a) {
				addrs = append(addrs, a)
			}
			continue
		}
		app, handler := b.s.leases.serves(inc, key.app, key.handler)
		hasApp = hasApp || app
		if handler && key.isBean() {
			addrs = append(addrs, a)
		}
	}
	slices.Sort(addrs)
	return addrs, hasApp
}

// callable reports whether an address is one that can be called. One that is not may
// come from a registry of the user's, or from before such were refused.
func (b *addressBook) callable(app, address string) bool {
	if strings.ContainsFunc(address, errs.NotPlain) {
		return false // it would be shown wherever its runs are
	}
	_, err := b.remotes.get(app, address)
	return err == nil
}

// withoutTwins leaves, of sorted addresses that differ in their spelling only, the
// first: an executor must not get two parts of a broadcast.
func withoutTwins(addrs []string) []string {
	addrs = slices.Compact(addrs)
	if len(addrs) < 2 {
		return addrs
	}
	seen := make(map[string]bool, len(addrs))
	return slices.DeleteFunc(addrs, func(a string) bool {
		n := wire.NormalAddress(a)
		twin := seen[n]
		seen[n] = true
		return twin
	})
}

// amongThem are the given addresses that an app has, in its own spelling, and the others.
func amongThem(all, given []string) (wanted, unknown []string) {
	spelled := make(map[string]string, len(all)) // by how they are compared
	for _, a := range slices.Backward(all) {
		spelled[wire.NormalAddress(a)] = a
	}
	for _, g := range given {
		if a, ok := spelled[wire.NormalAddress(g)]; ok {
			wanted = append(wanted, a)
		} else {
			unknown = append(unknown, g)
		}
	}
	return wanted, unknown
}

// chooseGiven is choose among the addresses that a trigger has given.
func (b *addressBook) chooseGiven(key bookKey, all, given []string) bookEntry {
	wanted, unknown := amongThem(all, given)
	e := b.choose(key, wanted)
	if len(unknown) > 0 && len(e.addrs) == 0 {
		e.none = fmt.Sprintf("none of the addresses of app %s can be reached from here: it has no %s", key.app, errs.Shorten(strings.Join(unknown, ", "), 500))
	}
	return e
}

func (b *addressBook) allOf(app string, a answer) []string {
	if a.manual || b.s.cfg.Registry != nil {
		return a.addrs
	}
	return append(slices.Clone(a.addrs), b.s.leases.localAddresses(app)...)
}

// possible are the addresses that a run of a job may be sent to, sorted: those of nodes
// that are doubted too, for they may be back when it is sent.
func (b *addressBook) possible(ctx context.Context, job *store.Job, given []string) ([]string, error) {
	all, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, job.App) })
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		all, _ = amongThem(all, given)
	}
	able, _ := b.able(bookKeyOf(job), all)
	return withoutTwins(able), nil
}
