package web

import (
	"context"
	"net/netip"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// Asker is who asks, as that is counted: a user, in whatever session and with whatever token, else the
// network that the request comes from.
type Asker struct {
	User    string // empty for nobody
	Network netip.Prefix
}

// Holder is for whom slots count.
func (a Asker) Holder() slots.Holder {
	if a.User == "" {
		return slots.Holder{Named: a.Network.String()}
	}
	return slots.Holder{Proved: a.User}
}

// Turn counts a question in a pace, or says how long it has to wait.
func (a Asker) Turn(in *slots.Pacer) error {
	name := "user " + a.User
	if a.User == "" {
		name = "address " + a.Network.String()
	}
	if _, wait := in.Turn(name, time.Now()); wait > 0 {
		return TooOften(wait)
	}
	return nil
}

// Place takes a slot for who asks until the request is answered, or says that there is none.
func (x *Exchange) Place(ctx context.Context, of *slots.Slots, who Asker) error {
	if !x.Hold(ctx, of, who.Holder()) {
		return TooOften(slots.Patience)
	}
	return nil
}
