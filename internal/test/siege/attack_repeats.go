//go:build unix

package siege

import (
	"context"
	"net/http"
)

// repeats sends pages of some 419 kB over a few connections: one lost run again and again,
// one run that is under way, many lost runs, runs that are unknown. It waits for the
// answers, as an executor does.
func (h *hostile) repeats(ctx context.Context) {
	clients := make([]*http.Client, h.cfg.Rates.Repeats)
	for i := range clients {
		clients[i] = &http.Client{Transport: &http.Transport{}} // a connection of its own
	}
	turns := make([]int, len(clients)) // each used by one goroutine
	paced(ctx, len(clients), h.cfg.Rates.RepeatsRate, func(i int) {
		r := h.rand(attackRepeats, i<<20+turns[i])
		turns[i]++
		one := h.cfg.Lost[r.IntN(len(h.cfg.Lost))]
		var ids []int64
		switch turns[i] % 4 {
		case 0:
			ids = anyOf(r, h.cfg.Lost, repeatItems)
		case 1:
			ids = repeated(one, repeatItems)
		case 2:
			ids = unknown(r, one, repeatItems)
		case 3:
			if running := h.held.next(); running != 0 {
				one = running
			}
			ids = repeated(one, repeatItems)
		}
		h.counts.add(attackRepeats+": "+h.post(ctx, clients[i], "callback", page(ids, repeatText)), 1)
	})
}
