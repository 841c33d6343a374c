package console_test

import (
	"net/url"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/console"
)

// TestOwnSetupGoesOn: a host that shows a code of its own does so once. When that does not count any
// more, the log has another, so that nobody has to start the process again.
func TestOwnSetupGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t, func(c *console.Config) { c.OwnSetup = true })
		code := must1(console.SetupCode(t.Context(), x.store))
		logged := regexp.MustCompile(`code=([A-Z2-7]{26})`)
		b := x.browser()
		fields := func(code string) url.Values {
			return url.Values{"code": {code}, "name": {"root"}, "password": {password}, "again": {password}}
		}
		time.Sleep(23 * time.Hour)
		b.get("").is(200).has("First user", "A code is valid for a day")
		if logged.MatchString(x.log.String()) {
			t.Fatalf("the log has a code while that of the host counts: %s", x.log)
		}
		time.Sleep(2 * time.Hour)
		b.get("setup").is(200)
		m := logged.FindStringSubmatch(x.log.String())
		if m == nil {
			t.Fatal("the log has no code")
		}
		b.post("setup", fields(code)).is(422).has("This code is not valid, or is no longer valid.")
		b.post("setup", fields(m[1])).is(200).has("Jobs")
	})
}
