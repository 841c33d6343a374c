package xxljob

// Which addresses of an app a job may go to.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

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
	if strings.ContainsFunc(address, notPlain) {
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
		e.none = fmt.Sprintf("none of the addresses of app %s can be reached from here: it has no %s", key.app, shorten(strings.Join(unknown, ", "), 500))
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
func (b *addressBook) possible(ctx context.Context, job *Job, given []string) ([]string, error) {
	all, err := call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, job.App) })
	if err != nil {
		return nil, err
	}
	if len(given) > 0 {
		all, _ = amongThem(all, given)
	}
	able, _ := b.able(bookKeyOf(job), all)
	return withoutTwins(able), nil
}
