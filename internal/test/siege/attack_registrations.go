//go:build unix

package siege

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
)

// registrars is how many connections the registrations come over.
const registrars = 8

// register registers ever new addresses, and some that it has registered before; on half of
// the requests it hangs up. All addresses lead to the executor of the hostile app, which
// answers.
func (h *hostile) register(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: registrars}}
	var serial atomic.Int64
	paced(ctx, registrars, h.cfg.Rates.Registrations, func(int) {
		n := serial.Add(1)
		address := n
		if n%3 == 0 {
			address = n / 2
		}
		body := h.registration(fmt.Sprintf("%d-%d", h.cfg.Seed, address))
		said := ""
		if n%2 == 0 {
			said = h.abandon(ctx, "registry", body, true)
		} else {
			said = h.post(ctx, client, "registry", body)
		}
		h.counts.add(attackRegistrations+": "+said, 1)
	})
}
