package console_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/console"
)

// region is the content of the page's region.
func (b *browser) region() string {
	b.Helper()
	m := regexp.MustCompile(`(?s)<div class="live" id="live"[^>]*>(.*?)(?:</table>|</form>|$)`).FindStringSubmatch(b.body)
	if m == nil {
		b.Fatalf("%s has no region", b.at)
	}
	return strings.TrimSpace(m[1])
}

// viewers are people who see the same lists each in a way of their own: by what they may, in which
// apps, and by what they have chosen.
func viewers(x *site) (list []*browser) {
	rights := []console.User{
		{Admin: true},
		{Admin: true, Apps: map[string]console.Role{"orders": console.Viewer}},
		{Apps: map[string]console.Role{"orders": console.Viewer}},
		{Apps: map[string]console.Role{"orders": console.Operator}},
		{Apps: map[string]console.Role{"orders": console.Editor}},
		{Apps: map[string]console.Role{"orders": console.Editor, "billing": console.Viewer}},
		{Apps: map[string]console.Role{"*": console.Viewer}},
		{Apps: map[string]console.Role{"*": console.Operator, "billing": console.None}},
	}
	looks := []url.Values{
		{},
		{"language": {"zh-CN"}},
		{"language": {"zh-TW"}, "zone": {"Asia/Taipei"}},
		{"zone": {"America/New_York"}},
		{"zone": {"job"}, "density": {"compact"}},
		{"list": {"jobs"}},
		{"list": {"runs"}, "column": {"param", "created"}},
		{"list": {"jobs"}, "column": {"key", "next"}},
	}
	for i, u := range rights {
		for k, look := range looks {
			u.Name = fmt.Sprintf("user%d.look%d", i, k)
			list = append(list, x.user(u).post("look", look).is(http.StatusOK))
		}
	}
	return list
}

// TestEachSeesTheirOwnRegion: whatever order people ask in, the part that is refreshed is the one of
// the whole page, which nobody shares.
func TestEachSeesTheirOwnRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		for _, app := range []string{"orders", "billing"} {
			for i := range 3 {
				j := x.job(app, fmt.Sprintf("%s %d", app, i))
				x.run(j)
				if i == 0 {
					must(t, x.s.StopJob(t.Context(), j.ID))
				}
			}
		}
		people := viewers(x)
		pages := []string{"jobs", "jobs?app=orders", "jobs?app=billing", "jobs?state=on", "jobs?order=next", "jobs?order=id&rows=200", "jobs?text=nothing", "jobs?type=CRON", "runs", "runs?app=orders", "runs?state=planned", "runs?text=orders", "runs?late=0", "overview", "overview?range=7d"}
		order := rand.New(rand.NewPCG(1, 2))
		for _, p := range order.Perm(len(people) * len(pages)) {
			b, page := people[p/len(pages)], pages[p%len(pages)]
			b.header = http.Header{}
			want := b.get(page).is(http.StatusOK).region()
			if got := b.live().get(page).is(http.StatusOK).region(); got != want {
				t.Fatalf("viewer %d of %s is shown\n%s\nwant\n%s", p/len(pages), page, got, want)
			}
		}
	})
}
