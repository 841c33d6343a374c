//go:build unix

package siege

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// dribbled are the endpoints whose requests dribble, in the order in which connections
// choose them: most go where executors have to be heard.
func dribbled() []string {
	return []string{
		"registry", "callback", "registryRemove", "registry", "callback", "addJob", "registryRemove", "registry", "callback", "updateJob",
		"registry", "callback", "registryRemove", "removeJob", "startJob", "registry", "callback", "stopJob", "registryRemove", "triggerJob",
	}
}

// dribble keeps connections busy with requests whose bodies come a byte at a time: half of
// them with a Content-Length of close to what is allowed, half in chunks, and some with
// blanks only, of which it is not known yet whether they are a body.
func (h *hostile) dribble(ctx context.Context) {
	n := h.cfg.Rates.Dribbles
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r := h.rand(attackDribble, i)
			endpoints := dribbled()
			d := dribbler{h: h, endpoint: endpoints[i%len(endpoints)], chunked: i/len(endpoints)%2 == 1, first: "{"}
			if r.IntN(8) == 0 {
				d.first = " "
			}
			if !pause(ctx, time.Duration(r.Int64N(int64(h.cfg.Rates.DribbleEvery)))) { // not all at once
				return
			}
			for ctx.Err() == nil {
				began := time.Now()
				h.counts.add(attackDribble+": "+d.once(ctx), 1)
				// Who is turned away at once does not come again at once: that would be
				// another attack.
				pause(ctx, max(h.cfg.Rates.DribbleEvery-time.Since(began), 0))
			}
		})
	}
	all.Wait()
}

// dribbler is one connection after the other.
type dribbler struct {
	h        *hostile
	endpoint string
	headers  string // in place of those for the endpoint
	chunked  bool
	first    string
}

// once keeps one request open for as long as the scheduler lets it, and returns how that
// ended.
func (d *dribbler) once(ctx context.Context) string {
	conn, err := d.h.dial(ctx)
	if err != nil {
		return "no connection"
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	headers := cmp.Or(d.headers, d.h.head(d.endpoint))
	head, first, next := headers+"Content-Length: 1000000\r\n\r\n", d.first, " "
	if d.chunked {
		head, first, next = headers+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n"+d.first+"\r\n", "1\r\n \r\n"
	}
	began := time.Now()
	for said := head + first; ctx.Err() == nil; said = next {
		if _, err := conn.Write([]byte(said)); err != nil {
			return ended(began, "closed")
		}
		// Reading is the pause between two bytes: an answer ends it.
		_ = conn.SetReadDeadline(time.Now().Add(d.h.cfg.Rates.DribbleEvery))
		var answer [512]byte
		switch n, err := conn.Read(answer[:]); {
		case n > 0:
			return ended(began, "answered")
		case errors.Is(err, os.ErrDeadlineExceeded):
		default:
			return ended(began, "closed")
		}
	}
	return "open at the end"
}

// ended says how long a request was let dribble, roughly.
func ended(began time.Time, how string) string {
	switch took := time.Since(began); {
	case took < time.Second:
		return how + " within 1 s"
	case took < 5*time.Second:
		return how + " within 5 s"
	case took < 15*time.Second:
		return how + " within 15 s"
	}
	return how + " later"
}
