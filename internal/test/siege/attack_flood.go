//go:build unix

package siege

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// hangUpAfter is how long a flooder waits for an answer, where it waits.
const hangUpAfter = 2500 * time.Millisecond

// flood sends the largest pages and hangs up: at once, or when the scheduler has given up
// waiting for its store. A third of the pages repeat one lost run, a third have all lost
// runs ten times, a third have runs that nobody knows. They are made beforehand: making
// them would cost this machine more than sending them.
func (h *hostile) flood(ctx context.Context) {
	r := h.rand(attackFlood, 0)
	pages := make([][]byte, 6)
	for i := range pages {
		var ids []int64
		switch i % 3 {
		case 0:
			ids = repeated(h.cfg.Lost[r.IntN(len(h.cfg.Lost))], floodItems)
		case 1:
			ids = anyOf(r, h.cfg.Lost, floodItems)
		case 2:
			ids = unknown(r, h.cfg.Lost[0], floodItems)
		}
		pages[i] = page(ids, floodText)
	}
	turns := make([]int, h.cfg.Rates.Flood)
	paced(ctx, len(turns), h.cfg.Rates.FloodRate, func(i int) {
		r := h.rand(attackFlood, 1+i<<20+turns[i])
		turns[i]++
		h.counts.add(attackFlood+": "+h.abandon(ctx, "callback", pages[r.IntN(len(pages))], r.IntN(2) == 0), 1)
	})
}

// abandon sends a request over a connection of its own and hangs up, at once or a little
// later. It returns what was said until then.
func (h *hostile) abandon(ctx context.Context, endpoint string, body []byte, atOnce bool) string {
	conn, err := h.dial(ctx)
	if err != nil {
		return "no connection"
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	head := h.head(endpoint) + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	buffers := net.Buffers{[]byte(head), body}
	if _, err := buffers.WriteTo(conn); err != nil {
		return "turned away while sending"
	}
	if atOnce {
		return "hung up at once"
	}
	_ = conn.SetReadDeadline(time.Now().Add(hangUpAfter + 100*time.Millisecond))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "hung up later"
	}
	defer resp.Body.Close()
	return saidIn(resp)
}

// dial opens a connection to the scheduler.
func (h *hostile) dial(ctx context.Context) (net.Conn, error) {
	u, err := url.Parse(h.cfg.Admin)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 3 * time.Second}
	return d.DialContext(ctx, "tcp", u.Host)
}

// head is the head of a request but for the length of its body, and the blank line.
func (h *hostile) head(endpoint string) string {
	return fmt.Sprintf("POST /xxl-job-admin/api/%s HTTP/1.1\r\nHost: siege\r\nContent-Type: application/json\r\n%s: %s\r\n%s: %s\r\n",
		endpoint, wire.HeaderToken, h.cfg.Token, wire.HeaderApp, hostileApp)
}
