package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestRangesOfTheOverview: four of them, each a link; any other is refused in words, however it is written. A
// change of a job is a tick that leads to it.
func TestRangesOfTheOverview(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		x.stocked(2)
		for _, of := range []string{"1h", "24h", "7d", "30d"} {
			root.get("overview?range="+of).is(http.StatusOK).has("1 h", "24 h", "7 d", "30 d")
			if !strings.Contains(root.body, `overview?range=`+of+`" aria-current="true"`) {
				t.Errorf("%s is not the present one", of)
			}
		}
		for _, of := range []string{"10y", "87600h", "3650d", "-1h", "0", "24H", "1h ", "x\x00", strings.Repeat("9", 2000)} {
			root.get("overview?range=" + strings.ReplaceAll(strings.ReplaceAll(of, " ", "+"), "\x00", "%00"))
			if root.res.StatusCode == http.StatusUnprocessableEntity {
				root.has("There is no such range: choose 1 h, 24 h, 7 d or 30 d")
			} else if of != "x\x00" && len(of) < 1024 { // what is no text counts as none
				t.Errorf("%.10q: %d", of, root.res.StatusCode)
			}
		}
	})
}

// TestWhatIsDueSoon: how many instants there are in the next half hour, and the second with the most; who
// sees some apps is told of theirs.
func TestWhatIsDueSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		begin := time.Now().UTC().Truncate(24 * time.Hour).Add(24*time.Hour + 5*time.Minute)
		time.Sleep(time.Until(begin))
		root := x.admin()
		for i := range 7 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprint("ten past ", i), Handler: "work", Schedule: xxljob.Cron("0 10 * * * ?").In("UTC")}))
		}
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "each minute", Handler: "work", Schedule: xxljob.Cron("30 * * * * ?").In("UTC")}))
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "billing", Name: "each second", Handler: "work", Schedule: xxljob.Cron("* * * * * ?").In("UTC")}))
		root.get("overview").is(http.StatusOK).has("fullest second × 8:", "00:10:00")
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
		viewer.get("overview").is(http.StatusOK).has("37 instants in the next 30 min", "fullest second × 7:", "00:10:00")
		for i := range 4 {
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprint("also each second ", i), Handler: "work", Schedule: xxljob.Cron("* * * * * ?").In("UTC")}))
		}
		root.get("overview").is(http.StatusOK).has("5000+ instants")
	})
}

// TestOverviewOfManyApps: of a thousand apps with long names, for who sees all, for who sees each by its
// name, and for who sees none.
func TestOverviewOfManyApps(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		apps := map[string]console.Role{"*": console.None}
		for i := range 1010 {
			app := fmt.Sprintf("app %04d %s", i, strings.Repeat("汇", 18))
			if i < 990 { // of so many by name a user may have rights
				apps[app] = console.Viewer
			}
			must1(x.s.AddJob(t.Context(), xxljob.Job{App: app, Name: fmt.Sprintf("%04d%s", i, strings.Repeat("b", 251)), Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}))
		}
		x.admin().get("overview").is(http.StatusOK).has("2 things need attention", "app 0002", "and 1,007 more")
		if n := len(x.user(console.User{Name: "each", Apps: apps}).get("overview").is(http.StatusOK).has("2 things need attention", "and 987 more").lacks("app 0995").body); n > 80<<10 {
			t.Errorf("the page has %d bytes", n)
		}
		x.user(console.User{Name: "none"}).get("overview").is(http.StatusOK).has("There are no jobs here yet").lacks("app 0001", "Shards")
	})
}
