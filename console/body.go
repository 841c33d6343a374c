package console

// Bodies of requests: how they are read, and how many at a time.

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// The bounds of bodies. One that falls behind its rate, which is counted from two seconds after it
// is begun with, or that has not come in time, is given up.
const (
	smallBody   = 64 << 10 // bytes of a user's body that needs no slot; without a user: mostOpen
	largeBodies = 16       // slots: half of them for those who are not logged in, four for each
	bodyRate    = 16 << 10 // bytes a second
	bodyGrace   = 2 * time.Second
	bodyTimeout = 10 * time.Second
	drainTime   = 500 * time.Millisecond
)

// readBody reads the body of the request, for which a large one has a slot until it is answered.
func (q *request) readBody(most int64) (string, error) {
	length, small := q.r.ContentLength, int64(smallBody)
	who := slots.Holder{Named: q.client.network().String()}
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
	text, err := readInTime(http.NewResponseController(q.w), http.MaxBytesReader(q.w, q.r.Body, most))
	q.hasRead = err == nil
	return text, err
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

// readInTime reads a body that comes no slower than it may.
func readInTime(control *http.ResponseController, body io.Reader) (string, error) {
	var all strings.Builder
	began, piece := time.Now(), make([]byte, 4<<10)
	for {
		deadline := began.Add(min(bodyTimeout, bodyGrace+time.Duration(all.Len())*time.Second/bodyRate))
		if err := control.SetReadDeadline(deadline); err != nil && time.Now().After(deadline) {
			return "", errSlowBody
		}
		n, err := body.Read(piece)
		all.Write(piece[:n])
		var large *http.MaxBytesError
		switch {
		case err == io.EOF:
			_ = control.SetReadDeadline(time.Time{}) // from here on the server watches the connection
			return all.String(), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", errSlowBody
		case errors.As(err, &large):
			return "", errTooLarge
		case err != nil:
			return "", badRequest(err)
		}
	}
}
