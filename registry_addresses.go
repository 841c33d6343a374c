package xxljob

import (
	"context"
	"fmt"
	"slices"
	"time"
)

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
func (b *addressBook) lookup(ctx context.Context, job *Job, given []string) (addrs []string, why string, err error) {
	key := bookKeyOf(job)
	if len(given) > 0 {
		return b.lookupGiven(ctx, key, given)
	}
	if e, cached := b.memory.cached(key); cached {
		return e.addrs, "", nil
	}
	now, version := time.Now(), b.memory.asOf()
	e, err := call(ctx, func(ctx context.Context) (bookEntry, error) { return b.read(ctx, key) })
	if err == nil && len(e.addrs) == 0 && b.s.cfg.Registry != nil && b.attached.unregistered(key.app) {
		// A registry of the user's has not heard of this node's executor yet; the
		// run would be refused for good.
		e, err = call(ctx, func(ctx context.Context) (bookEntry, error) {
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
	all, err := call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, key.app) })
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
	all, err := call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, app) })
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
func (b *addressBook) unserved(ctx context.Context, app string, jobs []Job) (map[bookKey]string, error) {
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
	why, err := call(ctx, read)
	if err == nil && len(why) > 0 && b.s.cfg.Registry != nil && b.attached.unregistered(app) {
		if err := b.register(ctx); err != nil {
			return nil, err
		}
		return call(ctx, read)
	}
	return why, err
}

// calledAt returns the executor that a run was sent to, while its address is one of the
// app's, or was a moment ago. It is for questions about the run and for its end; a run is
// sent to addresses of the present only.
func (b *addressBook) calledAt(ctx context.Context, r Run) (*remote, error) {
	known, err := b.knewLately(ctx, r.App, r.Address)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%s is not an address of app %s any more", r.Address, r.App)
	}
	return b.remotes.get(r.App, r.Address)
}
