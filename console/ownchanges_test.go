package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestEachOwnChangeWhileTheStoreFails: whichever call fails while somebody logs in, logs out or
// chooses a look, it is said, and who is told that it was done finds it so. It works the next time.
func TestEachOwnChangeWhileTheStoreFails(t *testing.T) {
	inMemory(t, testEachOwnChangeWhileTheStoreFails)
}

func testEachOwnChangeWhileTheStoreFails(t *testing.T) {
	x, f := faulty(t)
	x.admin()
	console.WithHashes(x.console, func(uint32, uint32) {})
	u := must1(x.store.User(t.Context(), "root"))
	u.Password = console.HashedBy(x.console, password)
	must1(x.store.UpdateUser(t.Context(), u))
	n := 0
	for _, c := range []struct {
		route string
		form  url.Values
		in    bool // it is for who is logged in
		done  func(b *browser) bool
	}{
		{"login", url.Values{"name": {"root"}, "password": {password}}, false, func(b *browser) bool { return b.get("jobs").at == "/console/jobs" }},
		{"logout", url.Values{}, true, func(b *browser) bool { return b.get("jobs").at != "/console/jobs" }},
		{"look", url.Values{"theme": {"dark"}}, true, func(b *browser) bool {
			delete(b.cookies, "xxljob_look")
			b.get("jobs")
			done := strings.Contains(b.body, `data-theme="dark"`)
			must(t, x.store.SaveSettings(t.Context(), "root", ""))
			return done
		}},
	} {
		before := func() *browser {
			if !c.in {
				return x.browser()
			}
			n++
			return x.session("root", fmt.Sprintf("secret %d", n))
		}
		send := func(b *browser) int {
			b.follows = false
			status := b.post(c.route, c.form).res.StatusCode
			b.follows = true
			return status
		}
		b := before()
		for _, method := range calling(f, func() { send(b) }) {
			for _, fault := range []storetest.Fault{{Before: true}, {After: true}} {
				what := fmt.Sprintf("%s while %s fails, before %v", c.route, method, fault.Before)
				b := before()
				remove := f.Inject(method, fault)
				status := send(b)
				remove()
				text := b.text()
				switch done := c.done(b); {
				case status == http.StatusSeeOther && !done:
					t.Errorf("%s: it is said to be done", what)
				case status != http.StatusSeeOther && status != http.StatusServiceUnavailable:
					t.Errorf("%s: status %d: %s", what, status, text)
				}
				if b := before(); send(b) != http.StatusSeeOther || !c.done(b) {
					t.Errorf("%s: it is not done the next time", what)
				}
			}
		}
	}
}
