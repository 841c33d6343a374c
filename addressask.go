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
	case err != nil && !isNotFound(err):
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
func registered(regs []Registration, now time.Time) answer {
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
