//go:build unix

package siege

import (
	"context"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

// looks asks for pages of the console as an honest admin who is logged in, each at its time, until ctx
// ends.
func (h *honest) looks(ctx context.Context) {
	pages := []string{"jobs", "runs", h.page, "changes", "jobs?app=" + honestApp, "runs?app=" + honestApp}
	client := &http.Client{Timeout: adminPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	n := 0
	h.atEach(ctx, 0, time.Second/lookRate, func(due time.Time) {
		path := pages[n%len(pages)]
		n++
		h.loads.Go(func() {
			outcome := judge.OK
			status, err := seePage(context.WithoutCancel(ctx), client, h.console, http.MethodGet, path, nil, h.admins)
			switch {
			case err != nil:
				outcome = broken(err)
			case status != http.StatusOK:
				outcome = judge.Refused
			}
			h.seen.Add(judge.Sample{From: due.Sub(h.began), To: time.Since(h.began), Outcome: outcome})
		})
	})
	h.loads.Wait()
}

const (
	// adminPatience is how long the admin waits for a page, and lookRate how many they ask for a
	// second: with parts of pages that refresh themselves some people together do.
	adminPatience = 10 * time.Second
	lookRate      = 5
)
