package browser

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/xxljob/xxljob"
)

// inEachWay is a test by mouse, by keyboard, on a narrow screen and without scripts, each on a site of its own.
func inEachWay(t *testing.T, made func(*testing.T) *site, does func(x *site, b *tab, h hand, scripts bool)) {
	browser(t)
	for _, f := range []struct {
		name    string
		hand    hand
		scripts bool
		width   int64
	}{{"mouse", mouse{}, true, 1280}, {"keyboard", keyboard{}, true, 1280}, {"narrow", mouse{}, true, 390}, {"without scripts", keyboard{}, false, 1280}} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			x := made(t)
			b := newTab(t, x.origin)
			b.looks(combination{"en", "light", f.width}, map[string]string{"xxljob_session": x.session("root")})
			b.scripts(f.scripts)
			does(x, b, f.hand, f.scripts)
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

// reports is a site with two jobs of nearly the same name, beside others.
func reports(t *testing.T) *site {
	x := idle(t)
	for _, name := range []string{"Load", "Report of sales", "Report of stock", "Purge"} {
		x.job(xxljob.Job{Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")})
	}
	return x
}

// TestJobsAreOffered: who types a part of a name in the form of a job is offered the jobs that have it, and one
// that is chosen stands with its name, its app and its ID among the children, and is saved. Without scripts
// the form asks which is meant.
func TestJobsAreOffered(t *testing.T) {
	inEachWay(t, reports, func(x *site, b *tab, h hand, scripts bool) {
		const field = "#f-children-add"
		b.open(mount + "jobs/" + strconv.FormatInt(x.jobs["Load"], 10) + "/edit")
		h.press(b, "details:has("+field+") > summary")
		b.fill(h, field, "report")
		want := "#" + strconv.FormatInt(x.jobs["Report of stock"], 10) + " Report of stock · orders"
		if scripts {
			b.until("both jobs", `document.querySelectorAll("#found option").length === 2`)
			offered := eval[[]string](b, `[...document.querySelectorAll("#found option")].map(o => o.value)`)
			if !slices.Contains(offered, want) || !eval[bool](b, `document.querySelector("`+field+`").list === document.querySelector("#found")`) {
				b.Errorf("offered are %q", offered)
			}
			// The list that drops down is the browser's. Who chooses in it has the text in the field at once.
			eval[bool](b, `(f => { f.value = `+quoted(want)+`; return f.dispatchEvent(new InputEvent("input", {bubbles: true, inputType: "insertReplacementText"})) })(document.querySelector("`+field+`"))`)
			b.says("#named-children", want)
			if left := eval[string](b, `document.querySelector("`+field+`").value`); left != "" {
				b.Errorf("in the field is left %q", left)
			}
		} else {
			h.press(b, "#jobform button.primary")
			b.says(".fault", "Several jobs may be meant by “report”")
			if n := eval[int](b, `document.querySelectorAll("select`+field+` option").length`); n != 3 {
				b.Errorf("there are %d to choose from, one of which is none", n)
			}
			h.reach(b, "select"+field)
			b.do(chromedp.SetValue(chromedp.CSS("select"+field), want))
		}
		if j := must1(x.store.Job(context.Background(), x.jobs["Load"])); len(j.Children) > 0 {
			b.Error("it was saved before anybody has said so")
		}
		h.press(b, "#jobform button.primary")
		b.says(".said", "saved")
		b.says("main", "Report of stock")
		if j := must1(x.store.Job(context.Background(), x.jobs["Load"])); !slices.Equal(j.Children, []int64{x.jobs["Report of stock"]}) {
			b.Errorf("the children are %v", j.Children)
		}
	})
}

// TestWhichJob: who filters runs by a text that several jobs have in their names is asked which one, and gets the
// runs of the one that is pressed; a whole name asks nothing.
func TestWhichJob(t *testing.T) {
	inEachWay(t, reports, func(x *site, b *tab, h hand, _ bool) {
		sought := func(text string) {
			b.open(mount + "runs?state=bad")
			h.press(b, "details.more > summary")
			b.fill(h, "details.more input[name=job]", text)
			b.do(chromedp.KeyEvent(kb.Enter))
		}
		to := func(job string) string {
			return `location.pathname + location.search === "` + mount + "runs?job=" + strconv.FormatInt(x.jobs[job], 10) + `&state=bad"`
		}
		sought("report of")
		b.says("h1", "Which job?")
		if list := eval[[]string](b, `[...document.querySelectorAll("main li a")].map(a => a.innerText)`); !slices.Equal(list, []string{"Report of sales", "Report of stock"}) {
			b.Errorf("it may be one of %q", list)
		}
		h.press(b, "main li:last-child a")
		b.until("its runs", to("Report of stock"))
		b.says(".chips", "Report of stock")
		sought("report of sales")
		b.until("its runs", to("Report of sales"))
	})
}

// TestBroadcastAsAWhole: the page of each part says how all of them have gone, lists them, those that failed
// first, each with why, and leads to them.
func TestBroadcastAsAWhole(t *testing.T) {
	inEachWay(t, standing, func(x *site, b *tab, h hand, _ bool) {
		b.open(mount + "runs/" + strconv.FormatInt(x.runs["part"], 10))
		b.says(".why", "no space left on device")
		if !eval[bool](b, `[".why", ".whole"].every(what => document.querySelector(what).getBoundingClientRect().bottom <= innerHeight)`) {
			b.Error("one has to scroll for why it failed, or how the others have gone")
		}
		all := func() {
			b.Helper()
			for _, text := range []string{"Broadcast of 5 parts", "1 failed", "3 succeeded", "1 running"} {
				b.says(".whole", text)
			}
			rows := eval[[]string](b, `[...document.querySelectorAll("table.branches tbody tr")].map(r => r.innerText)`)
			if len(rows) != parts || !strings.Contains(rows[0], "no space left on device") {
				b.Errorf("the parts are %q", rows)
			}
		}
		all()
		h.press(b, "table.branches tr:last-child a.row")
		b.until("another part", `location.pathname !== "`+mount+"runs/"+strconv.FormatInt(x.runs["part"], 10)+`" && document.querySelector(".whole")`)
		all()
	})
}
