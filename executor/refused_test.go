package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// ways are answers of an admin, or of what stands before it, to a callback that it does not take.
var ways = map[string]func() (wire.Return, error){
	"code 500":      func() (wire.Return, error) { return wire.Failf("no"), nil },
	"an empty code": func() (wire.Return, error) { return wire.Return{}, nil },
	"400":           status(400), "403": status(403), "405": status(405), "406": status(406), "413": status(413), "493": status(493), "500": status(500), "501": status(501),
	"302": status(302), "401": status(401), "404": status(404), // as well of an address that is wrong: it takes others
	"a page": func() (wire.Return, error) {
		return wire.Return{}, &wire.CallError{URL: "http://one/api/callback", Sent: true, Err: errors.New("no JSON"), Text: "<html>The requested URL was rejected."}
	},
}

func status(n int) func() (wire.Return, error) {
	return func() (wire.Return, error) {
		return wire.Return{}, &wire.CallError{URL: "http://one/api/callback", Sent: true, Status: n}
	}
}

// picky is an admin that does not take any of some runs.
type picky struct {
	*node
	refuse func() (wire.Return, error)
	bad    map[int64]bool
}

func newPicky(refuse func() (wire.Return, error), bad ...int64) *picky {
	p := &picky{node: newNode(), refuse: refuse, bad: map[int64]bool{}}
	for _, id := range bad {
		p.bad[id] = true
	}
	p.answer = func(batch []wire.CallbackRequest) (wire.Return, error) {
		ret, err := p.state()
		if err == nil && ret.OK() && slices.ContainsFunc(batch, p.refuses) {
			return p.refuse()
		}
		return ret, err
	}
	return p
}

// mend has the admin take everything.
func (p *picky) mend() {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	clear(p.bad)
}

func (p *picky) asked() int {
	p.admin.mu.Lock()
	defer p.admin.mu.Unlock()
	return p.calls
}

func (p *picky) refuses(r wire.CallbackRequest) bool {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	return p.bad[r.LogID]
}

// giveAll runs so many runs whose results the admin gets together.
func giveAll(t *testing.T, e *executor.Executor, n *node, from, to int64) {
	t.Helper()
	n.set(true)
	for id := from; id <= to; id++ {
		mustGive(t, e, "one", req(id, id))
	}
	synctest.Wait()
	n.set(false)
}

// inFiles is a test with results in memory, and one with results in files.
func inFiles(t *testing.T, test func(t *testing.T, dir string)) {
	for _, kept := range []string{"in memory", "in files"} {
		t.Run(kept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := ""
				if kept == "in files" {
					dir = t.TempDir()
				}
				test(t, dir)
			})
		})
	}
}

// TestRefusedResultHoldsUpNoOther: what an admin refuses for one result of a batch is put aside
// once it was refused three times alone while others are taken; in a way that may be about the address, 24 times.
func TestRefusedResultHoldsUpNoOther(t *testing.T) {
	for name, refuse := range ways {
		t.Run(name, func(t *testing.T) {
			more := int64(8)
			if slices.Contains([]string{"302", "401", "404"}, name) {
				more = 40
			}
			inFiles(t, func(t *testing.T, dir string) { holdsUpNoOther(t, dir, refuse, more) })
		})
	}
}

func holdsUpNoOther(t *testing.T, dir string, refuse func() (wire.Return, error), more int64) {
	var logged sharedLines
	p := newPicky(refuse, 13, 77)
	e := spooling(t, dir, p.node, executor.Config{Outbox: 122, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	giveAll(t, e, p.node, 1, 120)
	time.Sleep(10 * time.Second)
	if n := len(p.ids()); n != 118 {
		t.Errorf("%d results after ten seconds, want all but two", n)
	}
	time.Sleep(time.Hour) // it may be the admin, which has nothing else to take
	if strings.Contains(logged.String(), "level=ERROR") {
		t.Errorf("put aside while nothing else was taken:\n%s", logged.String())
	}
	var further []int64
	for id := int64(121); id <= 120+more; id++ {
		time.Sleep(6 * time.Second)
		mustGive(t, e, "one", req(id, id))
		synctest.Wait()
		further = append(further, id)
	}
	if got := p.ids(); len(got) < 118 || !slices.Equal(got[118:], further) {
		t.Errorf("then results of %v", got)
	}
	for _, id := range []int64{13, 77} {
		if n := strings.Count(logged.String(), fmt.Sprintf("put it aside, the run will have no result\" admin=one run=%d ", id)); n != 1 {
			t.Errorf("run %d is put aside %d times:\n%s", id, n, logged.String())
		}
	}
	if n := strings.Count(logged.String(), "\n"); n > 10 {
		t.Errorf("%d lines:\n%s", n, logged.String())
	}
	if dir != "" {
		files := spoolFiles(t, dir)
		for _, file := range files {
			if body, err := os.ReadFile(file); err != nil || filepath.Base(filepath.Dir(file)) != "refused" || !strings.Contains(logged.String(), "file="+file) ||
				!bytes.Contains(body, []byte(`"logId":13,`)) && !bytes.Contains(body, []byte(`"logId":77,`)) {
				t.Errorf("%s with %s, error %v", file, body, err)
			}
		}
		if len(files) != 2 {
			t.Errorf("files %q", files)
		}
	}
	giveAll(t, e, p.node, 200, 321) // nothing is owed
	synctest.Wait()
	if err := e.Stop(within(t, time.Minute)); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if n := len(p.ids()); n != 118+int(more)+122 {
		t.Errorf("%d results in the end", n)
	}
}

// TestAdminThatRefusesEverything: what an admin has refused for hours it takes when it is well
// again, and it was not asked more often than one that is away. So it is where something before an admin that
// is away answers for it.
func TestAdminThatRefusesEverything(t *testing.T) {
	all := map[string]func() (wire.Return, error){"code 500": ways["code 500"]}
	for _, n := range []int{302, 401, 404, 407, 421, 426} {
		all[fmt.Sprint(n)] = status(n)
	}
	for name, refuse := range all {
		t.Run(name, func(t *testing.T) { refusesEverything(t, refuse) })
	}
}

func refusesEverything(t *testing.T, refuse func() (wire.Return, error)) {
	inFiles(t, func(t *testing.T, dir string) {
		p := newPicky(refuse)
		for id := int64(1); id <= 300; id++ {
			p.bad[id] = true
		}
		e := spooling(t, dir, p.node, executor.Config{})
		giveAll(t, e, p.node, 1, 300)
		before := p.asked()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if most := 6 + 300 + 3*3600/3; p.asked()-before > most {
			t.Errorf("%d calls within three hours, want at most %d", p.asked()-before, most)
		}
		if n := len(p.ids()); n != 0 {
			t.Fatalf("%d results", n)
		}
		p.mend()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if n := len(p.ids()); n != 300 {
			t.Errorf("%d results once it takes them", n)
		}
		if dir != "" && len(spoolFiles(t, dir)) > 0 {
			t.Errorf("files %q", spoolFiles(t, dir))
		}
	})
}

// TestAwayIsNotRefused: what says nothing about a result has the batch sent again as it is.
func TestAwayIsNotRefused(t *testing.T) {
	away := map[string]func() (wire.Return, error){"no answer": func() (wire.Return, error) { return wire.Return{}, errBoom },
		"wrong token": func() (wire.Return, error) { return wire.Failf(wire.MsgTokenWrong), nil }}
	for _, n := range []int{408, 425, 429, 502, 503, 504, 521} {
		away[fmt.Sprint(n)] = status(n)
	}
	for name, refuse := range away {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPicky(refuse)
				for id := int64(1); id <= 40; id++ {
					p.bad[id] = true
				}
				e := spooling(t, "", p.node, executor.Config{})
				giveAll(t, e, p.node, 1, 40)
				time.Sleep(time.Hour)
				if n := len(p.ids()); n != 0 {
					t.Errorf("%d results", n)
				}
				p.mend()
				time.Sleep(10 * time.Second)
				if len(p.ids()) != 40 || len(p.batches) > 2 {
					t.Errorf("batches of %v", p.batches)
				}
			})
		})
	}
}

// TestRefusedInFrontInADoubtfulWay: results that something before the admin answers with a redirect or a 404,
// and that are all of their callback, let others pass, whether those come later or wait, and are put aside
// once others were taken.
func TestRefusedInFrontInADoubtfulWay(t *testing.T) {
	for _, n := range []int{302, 307, 401, 404, 421, 426} {
		for _, bad := range []int64{1, 2, 40} {
			t.Run(fmt.Sprintf("%d of %d", n, bad), func(t *testing.T) {
				inFiles(t, func(t *testing.T, dir string) {
					var logged sharedLines
					p := newPicky(status(n))
					for id := int64(1); id <= bad; id++ {
						p.bad[id] = true
					}
					e := spooling(t, dir, p.node, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
					giveAll(t, e, p.node, 1, bad)
					time.Sleep(time.Hour) // nothing else comes: it may be the admin
					synctest.Wait()
					if n := strings.Count(logged.String(), "level=ERROR"); n > 0 {
						t.Errorf("%d errors while nothing else was taken", n)
					}
					calls := p.asked()
					if most := 60 + 3600/3; calls > most {
						t.Errorf("%d calls within an hour, want at most %d", calls, most)
					}
					for id := int64(101); id <= 200; id++ {
						mustGive(t, e, "one", req(id, id))
						time.Sleep(6 * time.Second)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if n := len(p.ids()); n != 100 {
						t.Errorf("%d results of the others", n)
					}
					if n := strings.Count(logged.String(), "put it aside"); n != int(bad) {
						t.Errorf("%d are put aside, want %d", n, bad)
					}
					if n := strings.Count(logged.String(), "could not deliver"); n > 3+int(bad)/8 { // one in eight may be the admin
						t.Errorf("%d lines that results could not be delivered", n)
					}
					if err := e.Stop(within(t, time.Minute)); err != nil {
						t.Errorf("Stop: %v", err)
					}
				})
			})
		}
	}
}

// TestRefusedOneAfterTheOther: results that come a minute apart, or many at once, and that something before the
// admin answers with a 404, hold up none that comes behind them, however many they are; and once others are taken
// they are put aside.
func TestRefusedOneAfterTheOther(t *testing.T) {
	for name, tt := range map[string]struct {
		bad   int64
		apart time.Duration
	}{"twelve a minute apart": {12, time.Minute}, "six hundred at once": {600, 0}} {
		t.Run(name, func(t *testing.T) {
			inFiles(t, func(t *testing.T, dir string) {
				var logged sharedLines
				p := newPicky(status(404))
				e := spooling(t, dir, p.node, executor.Config{Outbox: 2000, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				for id := int64(1); id <= tt.bad; id++ {
					p.bad[id] = true
				}
				if tt.apart == 0 {
					giveAll(t, e, p.node, 1, tt.bad)
				}
				for id := int64(1); id <= tt.bad && tt.apart > 0; id++ {
					mustGive(t, e, "one", req(id, id))
					time.Sleep(tt.apart)
				}
				time.Sleep(time.Hour)
				for id := int64(1001); id <= 1100; id++ {
					mustGive(t, e, "one", req(id, id))
					time.Sleep(6 * time.Second)
				}
				time.Sleep(5 * time.Minute)
				if n := len(p.ids()); n != 100 {
					t.Errorf("%d results of the others", n)
				}
				if n := strings.Count(logged.String(), "put it aside"); tt.bad < 50 && n != int(tt.bad) {
					t.Errorf("%d are put aside, want %d", n, tt.bad)
				}
				p.mend()
				time.Sleep(10 * time.Minute)
				aside := strings.Count(logged.String(), "put it aside")
				got := p.ids()
				if slices.Sort(got); len(slices.Compact(got)) != 100+int(tt.bad)-aside {
					t.Errorf("%d results in the end, %d are put aside", len(got), aside)
				}
				giveAll(t, e, p.node, 2001, 4000) // nothing is owed
				synctest.Wait()
				if err := e.Stop(within(t, time.Minute)); err != nil {
					t.Errorf("Stop: %v", err)
				}
				if n := len(p.ids()); n != len(got)+2000 {
					t.Errorf("%d results, want %d", n, len(got)+2000)
				}
			})
		})
	}
}

// TestBalancerThatIsWrongForAMinute: what is answered with a 404 for a minute while others are taken, as by a balancer
// that is wrong for a part of the requests, is delivered once it is not.
func TestBalancerThatIsWrongForAMinute(t *testing.T) {
	inFiles(t, func(t *testing.T, dir string) {
		var logged sharedLines
		p := newPicky(status(404), 1, 2)
		e := spooling(t, dir, p.node, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		giveAll(t, e, p.node, 1, 2)
		for id := int64(3); id <= 20; id++ {
			if id == 12 {
				p.mend()
			}
			mustGive(t, e, "one", req(id, id))
			time.Sleep(6 * time.Second)
		}
		time.Sleep(time.Minute)
		if n := len(p.ids()); n != 20 || strings.Contains(logged.String(), "put it aside") {
			t.Errorf("%d results; %d put aside", n, strings.Count(logged.String(), "put it aside"))
		}
	})
}

// TestRefusedByOneNode: while another node of the admin has not answered, nothing is put aside.
func TestRefusedByOneNode(t *testing.T) {
	inFiles(t, func(t *testing.T, dir string) {
		p, other := newPicky(ways["403"], 2), newNode()
		other.set(true)
		a := admins{}
		e := over(t, a, executor.Config{SpoolDir: dir, Admins: []executor.AdminCluster{a.cluster("one", other, p.node)}})
		handle(t, e, "h", func(context.Context, *executor.Task) error { return nil })
		start(t, e)
		for id := int64(1); id <= 20; id++ {
			mustGive(t, e, "one", req(id, id))
			time.Sleep(6 * time.Second)
		}
		if n := len(p.ids()); n != 19 {
			t.Errorf("%d results", n)
		}
		other.set(false)
		time.Sleep(6 * time.Second)
		if got := other.ids(); !slices.Equal(got, []int64{2}) {
			t.Errorf("the other has results of %v", got)
		}
	})
}

// TestStopWithRefusedResult: at the end a result that is refused is tried once more, beside the
// others. In a file it is left to the next process, in memory it is counted.
func TestStopWithRefusedResult(t *testing.T) {
	inFiles(t, func(t *testing.T, dir string) {
		p := newPicky(ways["406"], 2, 3)
		e := spooling(t, dir, p.node, executor.Config{})
		giveAll(t, e, p.node, 1, 4)
		p.set(true)
		time.Sleep(10 * time.Second)
		mustGive(t, e, "one", req(5, 5))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.set(false)
		err := e.Stop(ctx)
		if got := p.ids(); !slices.Contains(got, 1) || !slices.Contains(got, 4) {
			t.Errorf("results of %v", got)
		}
		if dir == "" {
			if err == nil || !strings.Contains(err.Error(), "results were not delivered") {
				t.Errorf("Stop: %v", err)
			}
			return
		}
		p.mend()
		spooling(t, dir, p.node, executor.Config{})
		synctest.Wait()
		got := p.ids()
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), []int64{1, 2, 3, 4, 5}) || len(spoolFiles(t, dir)) > 0 {
			t.Errorf("then results of %v, files %q", got, spoolFiles(t, dir))
		}
	})
}

// TestRefusedOnADiskThatFails: where there is no file there is the line.
func TestRefusedOnADiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var logged sharedLines
		p := newPicky(ways["403"], 2)
		e := spooling(t, dir, p.node, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		e.BreakDisk(func(string) error { return syscall.ENOSPC })
		giveAll(t, e, p.node, 1, 3)
		for id := int64(4); id < 20; id++ {
			time.Sleep(6 * time.Second)
			mustGive(t, e, "one", req(id, id))
		}
		synctest.Wait()
		if n := len(p.ids()); n != 18 || e.InMemory() != 0 || !strings.Contains(logged.String(), "admin=one run=2 file=\"\"") {
			t.Errorf("%d results, %d in memory:\n%s", n, e.InMemory(), logged.String())
		}
	})
}

// TestFilesPutAsideAreBounded: a hundred are kept, the newest.
func TestFilesPutAsideAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := newPicky(ways["403"])
		for id := int64(1); id <= 120; id++ {
			p.bad[id] = true
		}
		e := spooling(t, dir, p.node, executor.Config{})
		giveAll(t, e, p.node, 1, 120)
		for id := int64(121); id < 150; id++ {
			time.Sleep(time.Minute)
			mustGive(t, e, "one", req(id, id))
		}
		synctest.Wait()
		if n := len(spoolFiles(t, dir)); n != 100 {
			t.Errorf("%d files", n)
		}
	})
}

// TestUnreadFileInFront: a file with as many results as travel together, which cannot be read, does
// not keep the others.
func TestUnreadFileInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var logged sharedLines
		n := newNode()
		e := spooling(t, dir, n, executor.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		giveAll(t, e, n, 1, 1)
		n.set(true)
		synctest.Wait()
		time.Sleep(time.Minute)
		var bad sync.Map
		e.BreakReads(func(op, file string) error {
			if _, broken := bad.Load(filepath.Base(file)); broken {
				return syscall.EIO
			}
			return nil
		})
		mustGive(t, e, "one", req(100, 100)) // under way, in memory
		synctest.Wait()
		mark := e.HoldWrites()
		for id := int64(1001); id <= 1050; id++ {
			mustGive(t, e, "one", req(id, id))
		}
		synctest.Wait()
		mark()
		synctest.Wait()
		for _, file := range spoolFiles(t, dir) { // none of them is read yet: the admin is away
			if strings.HasSuffix(file, "-50.json") {
				bad.Store(filepath.Base(file), true)
			}
		}
		for id := int64(2); id <= 200; id++ {
			if id != 100 {
				mustGive(t, e, "one", req(id, id))
			}
		}
		synctest.Wait()
		n.set(false)
		time.Sleep(10 * time.Second)
		if got := len(n.ids()); got != 200 {
			t.Errorf("%d results", got)
		}
		mustGive(t, e, "one", req(300, 300))
		synctest.Wait()
		if got := len(n.ids()); got != 201 {
			t.Errorf("%d results, one of them had to wait", got)
		}
		bad.Clear()
		time.Sleep(10 * time.Second)
		if got := len(n.ids()); got != 251 {
			t.Errorf("%d results in the end", got)
		}
		if got := strings.Count(logged.String(), "reading the spool has recovered"); got != 1 {
			t.Errorf("logged:\n%s", logged.String())
		}
	})
}
