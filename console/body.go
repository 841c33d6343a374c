package console

// Bodies of requests: how they are read, and how many at a time.

import (
	"errors"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
)

// The bounds of bodies.
const (
	smallBody   = 64 << 10 // bytes of a user's body that needs no slot; without a user: mostOpen
	largeBodies = 16       // slots: half of them for those who are not logged in, four for each
	drainTime   = 500 * time.Millisecond
)

// readBody reads the body of the request, for which a large one has a slot until it is answered.
func (q *request) readBody(most int64) (string, error) {
	length, small := q.r.ContentLength, int64(smallBody)
	who := slots.Holder{Named: q.client.Network().String()}
	if q.user == nil {
		small = mostOpen
	} else {
		who = slots.Holder{Proved: q.user.Name}
	}
	if length > most {
		return "", errTooLarge
	}
	if length < 0 || length > small {
		if !q.bodies.Take(q.ctx, who) {
			return "", errManyBodies
		}
		q.giveBack = append(q.giveBack, func() { q.bodies.Give(who) })
	}
	text, err := web.ReadBody(http.NewResponseController(q.w), http.MaxBytesReader(q.w, q.r.Body, most))
	q.hasRead = err == nil
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, web.ErrSlowBody):
		return "", errSlowBody
	case errors.As(err, &large):
		return "", errTooLarge
	case err != nil:
		return "", badRequest(err)
	}
	return text, nil
}

// leave gives back what the request has, when it has its answer. The server has a moment to read what nobody has wanted, so that the browser has sent it and reads the answer.
func (q *request) leave() {
	for _, give := range q.giveBack {
		give()
	}
	if !q.hasRead && q.r.Body != nil && q.r.Body != http.NoBody {
		_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(drainTime))
	}
}
