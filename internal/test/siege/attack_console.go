//go:build unix

package siege

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// What the console is attacked with. A viewer of the hostile app has a session, and everybody has
// names and tokens to try.

// slowForms keeps connections busy with forms that come a byte at a time: to the login, and as the
// viewer; by length and in chunks.
func (h *hostile) slowForms(ctx context.Context) {
	var all sync.WaitGroup
	for i := range h.cfg.Rates.ConsoleForms {
		all.Go(func() {
			head := "POST /console/login HTTP/1.1\r\nHost: siege\r\nContent-Type: application/x-www-form-urlencoded\r\n"
			if i%2 == 1 {
				head += "Cookie: " + sessionCookie(h.cfg.Viewer).String() + "\r\n"
			}
			d := dribbler{h: h, headers: head, chunked: i/2%2 == 1, first: "a"}
			pause(ctx, h.cfg.Rates.DribbleEvery*time.Duration(i)/time.Duration(h.cfg.Rates.ConsoleForms)) // not all at once
			for ctx.Err() == nil {
				began := time.Now()
				h.counts.add(attackForms+": "+d.once(ctx), 1)
				pause(ctx, max(h.cfg.Rates.DribbleEvery-time.Since(began), 0))
			}
		})
	}
	all.Wait()
}

// heavyPages asks for pages that have much in them, as the viewer.
func (h *hostile) heavyPages(ctx context.Context) {
	paths := []string{"runs?rows=500", fmt.Sprintf("runs/%d", h.cfg.Heavy), "jobs?rows=500", "changes?rows=500", fmt.Sprintf("runs/%d", h.cfg.Heavy), "jobs/export"}
	paced(ctx, 8, h.cfg.Rates.ConsolePages, func(i int) {
		path := paths[(i+int(h.pages.Add(1)))%len(paths)]
		h.counts.add(attackPages+": "+h.see(ctx, http.DefaultClient, http.MethodGet, path, nil, h.cfg.Viewer), 1)
	})
}

// searches looks for texts that there are not, as the viewer.
func (h *hostile) searches(ctx context.Context) {
	paced(ctx, 6, h.cfg.Rates.ConsoleSearches, func(int) {
		path := "runs?text=" + url.QueryEscape(fmt.Sprintf("nothing%d", h.pages.Add(1)))
		h.counts.add(attackSearches+": "+h.see(ctx, http.DefaultClient, http.MethodGet, path, nil, h.cfg.Viewer), 1)
	})
}

// logins tries passwords, of the admin's and of all kinds of names, from many addresses.
func (h *hostile) logins(ctx context.Context) {
	const addresses = 60
	clients := make([]*http.Client, addresses)
	for i := range clients {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		clients[i] = &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
	}
	paced(ctx, addresses, h.cfg.Rates.ConsoleLogins, func(i int) {
		name := consoleAdmin
		if n := h.pages.Add(1); n%3 > 0 {
			name = fmt.Sprintf("user%d", n)
		}
		form := url.Values{"name": {name}, "password": {"not the one at all"}}
		h.counts.add(attackLogins+": "+h.see(ctx, clients[i], http.MethodPost, "login", form, ""), 1)
	})
}

// guesses shows wrong tokens, to the console and as an executor.
func (h *hostile) guesses(ctx context.Context) {
	paced(ctx, 40, h.cfg.Rates.ConsoleTokens, func(i int) {
		n := h.pages.Add(1)
		if i%2 == 0 {
			h.counts.add(attackTokens+", of executors: "+h.postWith(ctx, http.DefaultClient, fmt.Sprintf("guess-%d", n), "registry", h.registration("executor")), 1)
			return
		}
		h.counts.add(attackTokens+", of users: "+h.see(ctx, http.DefaultClient, http.MethodGet, "jobs", nil, fmt.Sprintf("Bearer xj_1_guess%d", n)), 1)
	})
}

// sessionCookie is that of a session of the console.
func sessionCookie(secret string) *http.Cookie {
	return &http.Cookie{Name: "xxljob_session", Value: secret}
}

// see asks the console for something, with a session or a token or without, and returns the status of
// the answer.
func (h *hostile) see(ctx context.Context, c *http.Client, method, path string, form url.Values, as string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	status, err := seePage(ctx, c, h.cfg.Console, method, path, form, as)
	if err != nil {
		return saidNothing
	}
	return fmt.Sprintf("answered %d", status)
}

// seePage asks a console for a page and reads all of it.
func seePage(ctx context.Context, c *http.Client, console, method, path string, form url.Values, as string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, console+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	switch {
	case strings.HasPrefix(as, "Bearer "):
		req.Header.Set("Authorization", as)
	case as != "":
		req.AddCookie(sessionCookie(as))
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
