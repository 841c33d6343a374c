package xxljob

// Due runs of apps whose addresses cannot be read, or are being asked for.

import (
	"context"
	"errors"
	"time"
)

// unrouted has such runs wait. It belongs to the start loop.
type unrouted struct {
	*shared
	engine   *engine
	asked    *appsAsked
	backoffs map[string]*backoff // of apps whose addresses cannot be read
}

// setAside parks a run whose addresses could not be read, with the others of its
// app: the other apps go on. After a pause they are tried again.
func (u *unrouted) setAside(ctx context.Context, en *entry, err error) {
	if errors.Is(err, errAsking) || errors.Is(err, errBehind) {
		u.parkAsking(en, err)
		return
	}
	app := en.run.App
	b := u.backoffs[app]
	if b == nil {
		b = &backoff{log: u.log.With("app", app), what: "reading addresses"}
		u.backoffs[app] = b
	}
	at := errorLot(app)
	if u.engine.room.parkFirst(at, en) {
		b.failed(ctx, err)
		time.AfterFunc(b.delay(), func() {
			u.engine.room.admitAll(at)
		})
	}
}

// routedWell ends a streak of setAside.
func (u *unrouted) routedWell(ctx context.Context, app string) {
	if b := u.backoffs[app]; b != nil {
		b.failed(ctx, nil)
		delete(u.backoffs, app)
	}
}

// parkAsking parks a run until the addresses of its app are there, or behind those that
// wait because they could not be read.
func (u *unrouted) parkAsking(en *entry, why error) {
	u.engine.parkUnrouted(en, u.asked.asks, errors.Is(why, errAsking))
}
