package xxljob

// What the store and a registry say of an app.

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// ask asks the store and the registry. Where they do not answer, the last answer
// serves for as long as a heartbeat does: a table that somebody has locked must not
// keep runs from executors that are there.
func (b *addressBook) ask(ctx context.Context, app string) (answer, error) {
	now := time.Now()
	b.mu.Lock()
	last, known := b.last[app]
	if known && last.fresh && now.Sub(last.at) < addressTTL && len(last.addrs) > 0 {
		b.mu.Unlock()
		return last, nil // for another handler of the app
	}
	// All apps are in the same tables: one that waits for them is enough.
	for _, of := range []string{"", app} {
		if s, silent := b.silent[of]; silent && now.Sub(s.since) < addressPause {
			last.stale = s.cause
		}
	}
	version := b.version
	b.mu.Unlock()
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
		b.heard(app, a, version)
		return a, nil
	}
	if !known || ctx.Err() != nil {
		return answer{}, err
	}
	b.s.log.Warn("xxljob: address lookup failed; using the last known addresses", "app", app, "age", now.Sub(last.at), "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent[silent] = silence{since: time.Now(), cause: err}
	last.stale = err
	return last, nil
}

// heard remembers an answer. Who gave it is not silent any more. It is not fresh where
// there was news since it was asked for, of whatever app.
func (b *addressBook) heard(app string, a answer, version int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.fresh = b.version == version
	if was, ok := b.last[app]; ok && time.Since(was.at) < b.s.cfg.Cluster.Dead {
		for _, address := range vanished(was.addrs, a.addrs) {
			b.noteGone(app, address)
		}
	}
	if len(b.last) > 10_000 {
		clear(b.last)
		clear(b.entries)
		clear(b.silent)
	}
	b.last[app] = a
	delete(b.silent, "")
	delete(b.silent, app)
}

// vanished are the addresses of the one list that are not in the other.
func vanished(was, is []string) (gone []string) {
	if slices.Equal(was, is) {
		return nil
	}
	there := make(map[string]bool, len(is))
	for _, a := range is {
		there[a] = true
	}
	for _, a := range was {
		if !there[a] {
			gone = append(gone, a)
		}
	}
	return gone
}

// askNow says with an error who is silent: all apps are in the same tables of the store,
// but a registry of the user's may fail for one of them.
func (b *addressBook) askNow(ctx context.Context, app string) (a answer, silent string, err error) {
	group, err := b.s.store.Group(ctx, app)
	switch {
	case err == nil && group.Manual:
		return answer{addrs: group.Addresses, manual: true}, "", nil
	case err != nil && !isNotFound(err):
		return answer{}, "", err
	}
	if b.s.cfg.Registry != nil {
		addrs, err := b.users.lookup(ctx, app)
		return answer{addrs: addrs}, app, err
	}
	regs, err := b.s.store.Addresses(ctx, app, b.s.cfg.Cluster.Dead)
	return registered(regs), "", err
}

// registered is the answer that registrations are.
func registered(regs []Registration) answer {
	a := answer{addrs: make([]string, 0, len(regs)), boots: map[string]string{}}
	for _, r := range regs {
		a.addrs = append(a.addrs, r.Address)
		if r.BootID != "" && slices.Contains(r.Capabilities, wire.CapRepeat) {
			a.boots[r.Address] = r.BootID
		}
	}
	return a
}
