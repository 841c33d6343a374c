package console_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestLimitsOfTheForm: each field of a number says which it may have, and each of a text where one
// points at its label; the scheduler takes what it says and nothing beyond it; each field but texts and
// boxes to tick has a help.
func TestLimitsOfTheForm(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	other := x.job("orders", "other")
	form := with(root.newForm(), "block", "CONCURRENT", "catchup", "EVERY_MISSED", "retrypause", "1", "after", itoa(other.ID))
	// faulty reports whether a value of a field is found to be wrong.
	faulty := func(field, value string) bool {
		t.Helper()
		wrong := "author" // so that nothing is added
		if field == wrong {
			wrong = "alarm"
		}
		root.post("jobs/new", with(form, field, value, wrong, strings.Repeat("x", 300)))
		if root.res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(root.body, `id="f-`+wrong+`-fault"`) {
			t.Fatalf("%s: status %d", field, root.res.StatusCode)
		}
		return strings.Contains(root.body, `id="f-`+field+`-fault"`)
	}
	says := func(field string) string {
		_, help, _ := strings.Cut(root.body, `id="f-`+field+`-help">`)
		help, _, _ = strings.Cut(help, "</p>")
		return help
	}
	numbers, texts := 0, 0
	for _, f := range console.FormFields() {
		root.get("jobs/new?app=orders").is(200)
		help := says(f.Name)
		switch {
		case f.Upto > 0:
			numbers++
			want := "to " + grouped(f.Upto)
			if f.Span {
				want = "Such as 30s, 5m or 1h30m; a number alone is seconds. From "
			}
			if !strings.Contains(help, want) {
				t.Errorf("%s says %q and not %q", f.Name, help, want)
			}
			for _, value := range []int64{f.Least, f.Upto} {
				if faulty(f.Name, itoa(value)) {
					t.Errorf("%s: %d is refused", f.Name, value)
				}
			}
			if !faulty(f.Name, itoa(f.Upto+1)) || f.Least > 0 && !faulty(f.Name, strconv.FormatFloat(float64(f.Least)-0.5, 'f', -1, 64)) || f.Least == 0 && !faulty(f.Name, "-1") {
				t.Errorf("%s: what is beyond %d to %d is taken", f.Name, f.Least, f.Upto)
			}
		case f.Bytes > 0:
			texts++
			_, tip, _ := strings.Cut(root.body, `for="f-`+f.Name+`" title="`)
			if want := "At most " + grouped(int64(f.Bytes)) + " bytes."; !strings.HasPrefix(tip, want) {
				t.Errorf("%s says %.60q and not %q", f.Name, tip, want)
			}
			ruled := slices.Contains([]string{"conf", "zone", "afterzone"}, f.Name) // not each text of that length is one
			if !ruled && faulty(f.Name, strings.Repeat("x", f.Bytes)) {
				t.Errorf("%s: %d bytes are refused", f.Name, f.Bytes)
			}
			if !faulty(f.Name, strings.Repeat("x", f.Bytes+1)) {
				t.Errorf("%s: %d bytes are taken", f.Name, f.Bytes+1)
			}
		}
		if !f.Check && f.Bytes == 0 && help == "" {
			t.Errorf("%s has no help", f.Name)
		}
	}
	if numbers < 12 || texts < 10 {
		t.Errorf("%d numbers and %d texts have limits", numbers, texts)
	}

	// Lists have as many as the help says.
	root.get("jobs/new?app=orders").is(200)
	for field, want := range map[string]string{"tags": "At most 16 tags, each of at most 64 bytes.", "children": "At most 100", "childkeys": "At most 100", "after": "At most 100", "afterkeys": "At most 100"} {
		if help := says(field); !strings.Contains(help, want) {
			t.Errorf("%s says %q", field, help)
		}
	}
	some := func(n int, sep string, one func(int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = one(i)
		}
		return strings.Join(list, sep)
	}
	tag := func(bytes int) func(int) string {
		return func(i int) string { return strings.Repeat("x", bytes-2) + strconv.Itoa(10+i) }
	}
	key := func(i int) string { return "orders/k" + strconv.Itoa(i) }
	if faulty("tags", some(16, ",", tag(64))) || !faulty("tags", some(17, ",", tag(64))) || !faulty("tags", some(1, ",", tag(65))) {
		t.Error("tags are not as many, or not as long, as is said")
	}
	for _, c := range []struct{ ids, keys string }{{"children", "childkeys"}, {"after", "afterkeys"}} {
		for n, want := range map[int]bool{100: false, 101: true} {
			root.post("jobs/new", with(form, "after", "", c.keys, some(n, "\n", key), "author", strings.Repeat("x", 100))).is(http.StatusUnprocessableEntity)
			if got := strings.Contains(root.body, `id="f-`+c.ids+`-fault"`); got != want {
				t.Errorf("%d of %s: a fault %v", n, c.keys, got)
			}
		}
	}
	if n := len(must1(x.store.Jobs(t.Context(), xxljob.JobFilter{}))); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// grouped is a number as texts have it.
func grouped(n int64) string {
	s := itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
