package xxljob

// Probes of FAILOVER and BUSYOVER. The strategies say in which order to ask; the
// asking is I/O and is done here, by few goroutines, beside the path of the
// other runs.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/route"
)

// choose takes the first address, in order, that has answered well; the others
// that did are where the run goes on to after a refusal. Where an answer that
// matters is missing it asks, and says so: the run waits.
func (p *probes) choose(_ context.Context, job *Job, order []string) routed {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var log strings.Builder
	var good []string
	for _, addr := range order {
		a, ok := p.answers[keyOf(job, addr)]
		if !ok || now.Sub(a.from) >= probeTTL {
			if len(good) > 0 && !p.asking[job.ID].settling(now) {
				break // an earlier one is good: the later ones need not be asked
			}
			p.ask(job, order)
			return routed{probing: true}
		}
		if log.Len() < maxStartMsg {
			fmt.Fprintf(&log, "%s: %s\n", addr, a.text)
		}
		if a.ok {
			good = append(good, addr)
		}
	}
	probed := "probed:\n" + strings.TrimSuffix(log.String(), "\n")
	if len(good) == 0 {
		return routed{refused: "no address answered well; " + probed}
	}
	if job.Route == route.Busyover {
		// What was idle is busy from now on: the next run asks again.
		delete(p.answers, keyOf(job, good[0]))
	}
	return routed{address: good[0], choices: good[1:], msg: probed}
}
