package browser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// docPicture is a picture in the documents: the first screen of a page.
type docPicture struct {
	name string
	path string // where {job} is the one that fails, and {failed} the newest run of it
	sees string // what the page has, as a selector
	high int    // pixels, where it ends before the screen does: behind it stand names that are made by chance
}

var docPictures = []docPicture{
	{"overview", "overview", ".causes code.error", 0},
	{"run-failed", "runs/{failed}", ".why code", 620},
	{"job", "jobs/{job}", "svg.outcomes rect", 0},
	{"executors", "executors", "#live tbody tr", 0},
	{"timetable", "timetable?range=6h", ".slots .sign", 0},
}

// docLanguages are those of the documents, with the zone of those who read them and how a file is called.
var docLanguages = []struct{ tag, zone, file string }{{"en", "Europe/Berlin", "console-%s.png"}, {"zh-CN", "Asia/Shanghai", "console-%s.zh-CN.png"}}

// The size of the screen, and how many bytes a picture of it has at most.
const (
	docWidth, docHeight = 1440, 900
	mostOfADocPicture   = 110 << 10
)

// docDir is where the documents have their pictures, as seen from here.
const docDir = "../../docs/images"

// TestPicturesOfDocs makes the pictures of the documents, from a world whose clock stands still, so that
// the same console gives the same picture, in whatever tab it is. They are kept where pictures of
// pages are; make pictures puts them into docs.
func TestPicturesOfDocs(t *testing.T) {
	browser(t)
	t.Parallel()
	dir := os.Getenv("XXLJOB_DOC_PICTURES")
	if dir == "" {
		dir = pictures(t)
	}
	x, session := documented(t)
	made := map[string][]byte{}
	for range 2 {
		b := newTab(t, x.origin)
		// Ages on a page go by how long it has been open.
		b.do(call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `performance.now = () => 400`}))
		for _, l := range docLanguages {
			b.looks(combination{l.tag, "light", docWidth}, map[string]string{"xxljob_session": session, "xxljob_look": "language=" + l.tag + "&zone=" + strings.ReplaceAll(l.zone, "/", "%2F")})
			for _, p := range docPictures {
				b.do(chromedp.EmulateViewport(docWidth, int64(cmp.Or(p.high, docHeight))))
				b.open(mount + strings.NewReplacer("{job}", strconv.FormatInt(x.jobs["failing"], 10), "{failed}", strconv.FormatInt(x.runs["failed"], 10)).Replace(p.path))
				b.until(p.sees, `document.readyState === "complete" && "js" in document.documentElement.dataset && document.querySelector(`+quoted(p.sees)+`)`)
				time.Sleep(300 * time.Millisecond) // for what a page does when it is there
				shot := small(must1(chromedp.Run(b.ctx, chromedp.CaptureScreenshot())))
				name := fmt.Sprintf(l.file, p.name)
				if before, again := made[name]; again && !bytes.Equal(before, shot) {
					b.Errorf("%s is another picture in another tab", name)
				}
				if made[name] = shot; len(shot) > mostOfADocPicture {
					b.Errorf("%s has %d bytes, and %d are allowed", name, len(shot), mostOfADocPicture)
				}
				must(t, os.WriteFile(filepath.Join(dir, name), shot, 0o644))
			}
		}
		for _, fault := range b.takeFaults() {
			t.Error(fault)
		}
	}
}

// TestPicturesAreNamed: each picture of the console that the documents show is one that is made here, each
// that is made is shown, in its language, and is there in its size; a README shows one.
func TestPicturesAreNamed(t *testing.T) {
	shown := map[string][]string{}
	for _, doc := range []string{"README.md", "README.zh-CN.md", "docs/console.md", "docs/zh-CN/console.md"} {
		for _, m := range regexp.MustCompile(`!\[([^\]]*)\]\(((?:\.\./)?(?:docs/)?images/(console-[^)]*))\)`).FindAllStringSubmatch(string(must1(os.ReadFile("../../"+doc))), -1) {
			if shown[doc] = append(shown[doc], m[3]); m[1] == "" {
				t.Errorf("%s does not say what %s shows", doc, m[3])
			}
		}
	}
	made := map[string]int{}
	for i, l := range docLanguages {
		var all []string
		for _, p := range docPictures {
			all = append(all, fmt.Sprintf(l.file, p.name))
			made[all[len(all)-1]] = cmp.Or(p.high, docHeight)
		}
		readme, doc := []string{"README.md", "README.zh-CN.md"}[i], []string{"docs/console.md", "docs/zh-CN/console.md"}[i]
		if !slices.Equal(slices.Sorted(slices.Values(shown[doc])), slices.Sorted(slices.Values(all))) {
			t.Errorf("%s shows %q, and what is made is %q", doc, shown[doc], all)
		}
		if !slices.Equal(shown[readme], all[:1]) {
			t.Errorf("%s shows %q, want %q", readme, shown[readme], all[:1])
		}
	}
	for _, file := range must1(filepath.Glob(docDir + "/console-*")) {
		name := filepath.Base(file)
		high, known := made[name]
		if !known {
			t.Errorf("nobody makes %s", name)
		}
		delete(made, name)
		text := must1(os.ReadFile(file))
		if c, err := png.DecodeConfig(bytes.NewReader(text)); err != nil || c.Width != docWidth || known && c.Height != high || len(text) > mostOfADocPicture {
			t.Errorf("%s: %d x %d, %d bytes, %v", name, c.Width, c.Height, len(text), err)
		}
	}
	for name := range made {
		t.Errorf("%s is not there: make pictures", name)
	}
}

// small is a picture in the 256 colors that it has most of, each other one being the next of these.
func small(shot []byte) []byte {
	whole := must1(png.Decode(bytes.NewReader(shot)))
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA) }
	box, times := whole.Bounds(), map[color.RGBA]int{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			times[at(x, y)]++
		}
	}
	colors := make([]color.RGBA, 0, len(times))
	for c := range times {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), slices.Compare([]uint8{a.R, a.G, a.B}, []uint8{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	next := map[color.RGBA]uint8{}
	out := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, known := next[c]
			if !known {
				i = uint8(palette.Index(c))
				next[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	must1(true, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out))
	return b.Bytes()
}

// documented is the site of the documents, and a session of its user: two services have run their jobs
// for a day, in a bubble whose clock stands still from then on, as somebody waits in it for the end
// of the test who is woken from outside.
func documented(t *testing.T) (x *site, session string) {
	t.Helper()
	there, over, gone := make(chan bool), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		synctest.Test(t, func(t *testing.T) {
			x = &site{T: t, store: memory.New(), jobs: map[string]int64{}, runs: map[string]int64{}}
			x.live(time.Date(2027, 3, 1, 8, 14, 20, 0, time.UTC))
			session = x.session("root")
			there <- true
			<-over
		})
	}()
	t.Cleanup(func() { close(over); <-gone })
	select {
	case <-there:
	case <-gone:
		t.Fatal("there is no world to make pictures of")
	}
	return x, session
}

// live has the services of the site run for a day, until the time.
func (x *site) live(until time.Time) {
	x.Helper()
	ctx := xxljob.WithActor(context.Background(), "zhao.min")
	time.Sleep(time.Until(until.Add(-24 * time.Hour)))
	handlers := map[string]map[string]xxljob.Handler{
		"orders": {"stock": lasts(2*time.Second, 4*time.Second), "export": lasts(25*time.Second, 50*time.Second), "remind": lasts(5*time.Second, 15*time.Second),
			"purge": lasts(20*time.Second, time.Minute), "snapshot": lasts(8*time.Second, 9*time.Second), "recommend": recommend},
		"ledger": {"rates": ratesUntil(until.Add(-30 * time.Minute)), "ledger": lasts(18*time.Minute, time.Minute), "invoices": lasts(40*time.Second, 30*time.Second), "reconcile": lasts(12*time.Second, 20*time.Second)},
	}
	for _, app := range []string{"ledger", "orders"} {
		s, err := xxljob.New(x.store, xxljob.Config{App: app, Node: map[string]string{"orders": "orders-7c9d5-x2x4q", "ledger": "ledger-5f6b8-m9t7w"}[app], Logger: slog.New(slog.DiscardHandler),
			Cluster: xxljob.ClusterConfig{LeaseTTL: time.Minute, LostAfter: 2 * time.Minute}})
		must(x.T, err)
		for name, h := range handlers[app] {
			must(x.T, s.Handle(name, h))
		}
		must(x.T, s.Start(ctx))
		x.Cleanup(func() { _ = s.Stop(context.Background()) })
		x.s = s // that of orders has the console
	}
	var rates xxljob.Job
	for _, j := range []xxljob.Job{
		{App: "ledger", Name: "Import exchange rates", Handler: "rates", Schedule: xxljob.Cron("0 0/5 * * * ?"), Author: "li.na", Tags: []string{"external"}},
		{App: "ledger", Name: "Nightly ledger export", Handler: "ledger", Schedule: xxljob.Cron("0 0 2 * * ?"), Author: "zhao.min", Tags: []string{"nightly"}},
		{App: "ledger", Name: "Close open invoices", Handler: "invoices", Schedule: xxljob.Cron("0 30 * * * ?"), Author: "zhao.min"},
		{App: "ledger", Name: "Reconcile payments", Handler: "reconcile", Schedule: xxljob.Cron("0 0/10 * * * ?"), Author: "li.na"},
		{App: "orders", Name: "Sync stock levels", Handler: "stock", Schedule: xxljob.Cron("0 * * * * ?"), Author: "wang"},
		{App: "orders", Name: "Export orders to the warehouse", Handler: "export", Schedule: xxljob.Cron("0 2/5 * * * ?"), Author: "wang", Tags: []string{"warehouse"}},
		{App: "orders", Name: "Send reminders", Handler: "remind", Schedule: xxljob.Cron("0 0/10 * * * ?"), Author: "wang"},
		{App: "orders", Name: "Purge expired carts", Handler: "purge", Schedule: xxljob.FixedDelay(15 * time.Minute)},
		{App: "orders", Name: "库存快照", Handler: "snapshot", Schedule: xxljob.Cron("0 5/15 * * * ?"), Author: "王小明", Tags: []string{"warehouse"}},
		{App: "orders", Name: "Rebuild recommendations", Handler: "recommend", Schedule: xxljob.Cron("0 0 * * * ?"), Author: "li.na"},
		{App: "billing", Name: "Send invoices", Handler: "invoices", Schedule: xxljob.Cron("0 0 9 * * ?").In("Europe/Berlin"), Author: "li.na", OnNoExecutor: xxljob.OnNoExecutorWait},
		{App: "billing", Name: "Dunning letters", Handler: "dunning", Schedule: xxljob.Cron("0 0 18 * * ?").In("Europe/Berlin"), Author: "li.na", OnNoExecutor: xxljob.OnNoExecutorWait, Stopped: true},
	} {
		if added := x.job(j); j.Handler == "rates" {
			rates = added
		}
	}
	time.Sleep(time.Until(until.Add(-35 * time.Minute)))
	rates.Timeout = 30 * time.Second
	_, err := x.s.UpdateJob(ctx, rates)
	must(x.T, err)
	time.Sleep(time.Until(until))
	x.jobs["failing"] = rates.ID
	last := must1(x.store.Runs(ctx, xxljob.RunFilter{JobID: rates.ID, States: []xxljob.State{xxljob.StateFailed}, Limit: 1}))
	if len(last) != 1 {
		x.Fatal("no run of the job has failed")
	}
	x.runs["failed"] = last[0].ID
	x.faults = storetest.WrapWhole(x.store)
	x.serve(x.s, console.Accounts())
	x.user("root")
}

// lasts is a handler that takes from a time to as much more, by its instant.
func lasts(least, more time.Duration) xxljob.Handler {
	return func(ctx context.Context, t *xxljob.Task) error {
		h := fnv.New32a()
		fmt.Fprint(h, t.JobName, t.ScheduledAt.Unix())
		n := h.Sum32() % 1000
		t.Log().Info("begun", "instant", t.ScheduledAt.UTC())
		select {
		case <-time.After(least + more*time.Duration(n)/1000):
		case <-ctx.Done():
			return ctx.Err()
		}
		t.Log().Info("done", "rows", n*7)
		t.SetResult(fmt.Sprintf(`{"rows":%d}`, n*7))
		return nil
	}
}

// recommend is a handler that says how far it is.
func recommend(ctx context.Context, t *xxljob.Task) error {
	for n := range 50 {
		t.Progress(2*n, fmt.Sprintf("%d of 50 parts", n))
		select {
		case <-time.After(30 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ratesUntil is a handler that does what it does for others until a time, and fails from then on.
func ratesUntil(until time.Time) xxljob.Handler {
	well := lasts(3*time.Second, 5*time.Second)
	return func(ctx context.Context, t *xxljob.Task) error {
		if time.Now().Before(until) {
			return well(ctx, t)
		}
		t.Log().Info("asking for the rates of the day", "from", "https://rates.example.com/daily", "proxy", "10.1.4.7:8443")
		for n := range 3 {
			time.Sleep(5 * time.Second)
			t.Log().Warn("no answer", "try", n+1, "error", "dial tcp 10.1.4.7:8443: i/o timeout")
		}
		t.Log().Error("the rates of yesterday stay in use")
		return errors.New("rates.example.com: dial tcp 10.1.4.7:8443: i/o timeout")
	}
}
