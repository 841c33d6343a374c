package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestThereAndBack: from page to page of each list, to its end and back.
func TestThereAndBack(t *testing.T) { onBothStores(t, testThereAndBack) }

func testThereAndBack(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	for i := range 130 {
		x.job("orders", fmt.Sprintf("%03d %s", i, strings.Repeat("long name ", 9)))
	}
	j := x.job("orders", "zzz the last of all")
	for range 130 {
		x.run(j)
	}
	for _, list := range []string{"jobs", "jobs?order=id&app=orders", "runs", "runs?state=planned", "runs?state=waiting", "changes", "changes?object=job"} {
		to := list
		var seen []string
		for ; to != ""; to = b.linked("Next page") {
			seen = append(seen, b.get(to).is(200).rows())
			if len(seen) > 10 {
				t.Fatalf("%s has no end", list)
			}
		}
		if len(seen) < 3 {
			t.Errorf("%s has %d pages", list, len(seen))
		}
		for n := len(seen) - 2; n >= 0; n-- {
			if to = b.linked("Previous page"); to == "" {
				t.Fatalf("%s: there is no way back to page %d", list, n+1)
			}
			if got := b.get(to).is(200).rows(); got != seen[n] {
				t.Errorf("%s: page %d is another one on the way back", list, n+1)
			}
		}
		if b.linked("Previous page") != "" || b.linked("First page") != "" {
			t.Errorf("%s: there is something before the first page", list)
		}
		if b.get(b.linked("Next page")).get(b.linked("Next page")).get(b.linked("First page")).rows() != seen[0] {
			t.Errorf("%s: the first page is another one", list)
		}
	}
}

// TestALongWayBack: an address stays short, and does not lead to another page than it says.
func TestALongWayBack(t *testing.T) { onBothStores(t, testALongWayBack) }

func testALongWayBack(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	for i := range 60 {
		x.job("orders", fmt.Sprintf("%03d", i))
	}
	next := b.get("jobs").link("Next page")
	_, place, _ := strings.Cut(next, "after=")
	b.get("jobs?after=" + place + strings.Repeat("&up="+place, 100)).is(200)
	if to := b.linked("Previous page"); to == "" || b.get(to).is(200).rows() == "" {
		t.Error("a long way cannot be gone back")
	}
	b.get("jobs?after=" + place + "&up=").is(200)
	if b.linked("Previous page") != "" || b.linked("First page") == "" {
		t.Error("a way that is forgotten leads somewhere")
	}
}

// rows are the lines of the page's list, with the times that they say: not how long it is until then,
// which is another one a moment later.
func (b *browser) rows() string {
	return strings.Join(regexp.MustCompile(`class="row[^"]*" href="[^"]*"|<td class="c-(?:next|scheduled|at)(?: no)?">(?:<a[^>]*>)?(?:<time datetime="[^"]*"|–)`).FindAllString(b.body, -1), "\n")
}
