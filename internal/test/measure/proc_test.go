package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// statOf is a /proc/PID/stat: times are in hundredths of a second.
func statOf(pid int, program string, parent, user, system, reapedUser, reapedSystem, start int) string {
	return fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 %d %d %d %d 20 0 1 0 %d 1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
		pid, program, parent, user, system, reapedUser, reapedSystem, start)
}

// machine is a planted /proc with a Postgres server: its first process is 100.
func machine() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"100/stat":             file(statOf(100, "postgres", 1, 10, 20, 300, 400, 5000)),
		"101/stat":             file(statOf(101, "postgres", 100, 1, 2, 0, 0, 5001)),
		"102/stat":             file(statOf(102, "postgres", 100, 1000, 2000, 0, 0, 5002)),
		"103/stat":             file(statOf(103, "my) tool (x", 1, 7, 8, 100000, 0, 6000)),
		"104/stat":             file(statOf(104, "grandchild", 102, 50000, 0, 0, 0, 6000)),
		"stat":                 file("cpu  1000 200 300 99999 5000 40 50 60 70 80\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1 2\nbtime 1700000000\nprocesses 9\n"),
		"self/status":          file("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\nThreads:\t9\n"),
		"102/status":           file("VmHWM:\t  1 kB\n"),
		"meminfo":              file("MemTotal:       24000000 kB\nMemFree:        1 kB\n"),
		"cpuinfo":              file("processor\t: 0\nmodel name\t: Planted CPU: 2 GHz\n\nprocessor\t: 1\nmodel name\t: Another\n"),
		"sys/kernel/osrelease": file("6.1.0-test\n"),
	}
}

// is fails the test unless a figure is known, and what it has to be.
func is(t *testing.T, what string, f measure.Figure, want float64) {
	t.Helper()
	if v, ok := f.Value(); !ok || v < want-1e-6 || v > want+1e-6 {
		t.Errorf("%s is %s, want %v", what, f.Text(6), want)
	}
}

func unknown(t *testing.T, what string, f measure.Figure) {
	t.Helper()
	if v, ok := f.Value(); ok {
		t.Errorf("%s is %v, want unknown", what, v)
	}
}

func TestFiguresOfProc(t *testing.T) {
	p := measure.Proc{Dir: machine()}
	is(t, "a process", p.Process(102), 30)
	is(t, "a process with brackets in its name", p.Process(103), 0.15)
	is(t, "a server", p.Tree(100), 0.3+7+0.03+30)
	is(t, "the machine", p.Busy(), (1000+200+300+40+50+60)/100.0)
	is(t, "the peak", p.PeakRSS(), 2<<20)
	is(t, "the peak of another", p.PeakRSSOf(102), 1024)
	m := p.Machine()
	is(t, "the memory", m.Memory, 24000000*1024)
	if m.CPU != "Planted CPU: 2 GHz" || !strings.HasSuffix(m.System, " 6.1.0-test") || m.Cores != runtime.NumCPU() {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(m.String(), "Planted CPU: 2 GHz") || m.GOGC == "" || m.GOGC == "unknown" || m.GOMEMLIMIT == "unknown" {
		t.Error(m)
	}
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	empty := measure.Proc{Dir: fstest.MapFS{}}
	unknown(t, "a process", empty.Process(102))
	unknown(t, "a server", empty.Tree(100))
	unknown(t, "the machine", empty.Busy())
	unknown(t, "the peak", empty.PeakRSS())
	unknown(t, "the memory", empty.Machine().Memory)
	for _, text := range []string{"", "100", "100 (postgres", "100 (postgres) S 1 2", strings.Replace(statOf(100, "x", 1, 10, 20, 3, 4, 5), " 10 20 ", " 10 x ", 1),
		strings.Replace(statOf(100, "x", 1, 10, 20, 3, 4, 5), "S 1 ", "S - ", 1)} {
		p := measure.Proc{Dir: fstest.MapFS{"100/stat": {Data: []byte(text)}}}
		unknown(t, text, p.Process(100))
	}
	for _, text := range []string{"cpu 1 2 3", "cpu 1 2 3 x 5 6 7 8", "cpu 1 2 3 4 5 6 7 x", "cpus 1 2 3 4 5 6 7 8"} {
		unknown(t, text, measure.Proc{Dir: fstest.MapFS{"stat": {Data: []byte(text)}}}.Busy())
	}
	for _, text := range []string{"VmHWM:\t 1 MB", "VmHWM:\t x kB", "VmHWM:\t", "VmRSS: 1 kB"} {
		unknown(t, text, measure.Proc{Dir: fstest.MapFS{"self/status": {Data: []byte(text)}}}.PeakRSS())
	}
}

// restless is a machine on which a child ends while the others are read: its time is then
// among what its parent has waited for.
type restless struct {
	fstest.MapFS
	ends *int // times that a child ends
}

func (r restless) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := r.MapFS.ReadDir(name)
	if *r.ends > 0 {
		*r.ends--
		first := statOf(100, "postgres", 1, 10, 20, 300+1000*(1+*r.ends), 400+2000, 5000)
		r.MapFS["100/stat"] = &fstest.MapFile{Data: []byte(first)}
		delete(r.MapFS, "102/stat")
	}
	return entries, err
}

func TestAChildThatEndsIsCountedOnce(t *testing.T) {
	ends := 1
	p := measure.Proc{Dir: restless{machine(), &ends}}
	is(t, "a server of which one process has just ended", p.Tree(100), 0.3+7+0.03+30)
	ends = 1000
	unknown(t, "a server whose processes end all the time", p.Tree(100))
}

// answers is a server that gives fixed ones.
func answers(list map[string]string) measure.Query {
	return func(_ context.Context, sql string) (string, error) {
		for part, answer := range list {
			if strings.Contains(sql, part) {
				return answer, nil
			}
		}
		return "", errors.New("no answer to " + sql)
	}
}

func TestPostmaster(t *testing.T) {
	p := measure.Proc{Dir: machine()}
	for answer, want := range map[string]int{
		"102 1700000050.2": 100,
		"101 1700000052":   100,
		"102 1700009000.2": 0, // another server, of another machine
		"104 1700000050.2": 0, // not a server here
		"100 1700000050.2": 0, // whose parent is none
		"999 1700000050.2": 0,
		"":                 0,
		"x y":              0,
	} {
		if got := p.Postmaster(t.Context(), answers(map[string]string{"pg_backend_pid": answer})); got != want {
			t.Errorf("%q: %d, want %d", answer, got, want)
		}
	}
	if got := p.Postmaster(t.Context(), answers(nil)); got != 0 {
		t.Errorf("a server that does not answer: %d", got)
	}
}

func TestAskServer(t *testing.T) {
	s, err := measure.AskServer(t.Context(), answers(map[string]string{"server_version": "15.18", "'fsync'": "on", "'jit'": "", "current_setting": "x"}))
	if err != nil || s.Version == "" {
		t.Fatal(s, err)
	}
	if !strings.HasPrefix(s.String(), "Postgres ") || !strings.Contains(s.String(), "synchronous_commit=x") {
		t.Error(s)
	}
	if _, err := measure.AskServer(t.Context(), answers(nil)); err == nil {
		t.Error("no error of a server that does not answer")
	}
}

func TestWAL(t *testing.T) {
	is(t, "the position", measure.WAL(t.Context(), answers(map[string]string{"insert_lsn": "123456789012"})), 123456789012)
	unknown(t, "an answer that is none", measure.WAL(t.Context(), answers(map[string]string{"insert_lsn": "1/2"})))
	unknown(t, "the position of a server that does not answer", measure.WAL(t.Context(), answers(nil)))
}

func TestUsageIsTheDifference(t *testing.T) {
	dir := machine()
	lsn := map[string]string{"insert_lsn": "1000"}
	m := measure.Meter{Proc: measure.Proc{Dir: dir}, Postmaster: 100, Children: []int{103}, Query: answers(lsn)}
	from := m.Now(t.Context())
	dir["102/stat"] = &fstest.MapFile{Data: []byte(statOf(102, "postgres", 100, 1100, 2050, 0, 0, 5002))}
	dir["103/stat"] = &fstest.MapFile{Data: []byte(statOf(103, "tool", 1, 27, 8, 0, 0, 6000))}
	dir["stat"] = &fstest.MapFile{Data: []byte("cpu  2000 200 300 99999 5000 40 50 60 70 80\n")}
	lsn["insert_lsn"] = "3500"
	runtime.GC() // small objects are counted when their span is full, or the collector runs
	to := m.Now(t.Context())
	to.OwnCPU, to.At = from.OwnCPU.Plus(measure.Known(3)), from.At.Add(2*time.Second)
	u := from.To(to)
	is(t, "the server", u.ServerCPU, 1.5)
	is(t, "the children", u.ChildCPU, 0.2)
	is(t, "the log", u.WALBytes, 2500)
	is(t, "the others", u.OtherCores, (10-1.5-0.2-3)/2)
	if v, ok := u.AllocObjects.Value(); !ok || v <= 0 {
		t.Errorf("objects: %s", u.AllocObjects.Text(0))
	}
}

func TestTheZeroMeterMeasuresThisProcess(t *testing.T) {
	var m measure.Meter
	from := m.Now(t.Context())
	u := from.To(m.Now(t.Context()))
	unknown(t, "a server that is none", u.ServerCPU)
	unknown(t, "its log", u.WALBytes)
	if runtime.GOOS != "linux" {
		return
	}
	for what, f := range map[string]measure.Figure{"own CPU": u.OwnCPU, "others": u.OtherCores, "the peak": m.Proc.PeakRSS(), "bytes": u.AllocBytes} {
		if _, ok := f.Value(); !ok {
			t.Errorf("%s is unknown", what)
		}
	}
}

func TestFigures(t *testing.T) {
	one, none := measure.Known(1), measure.Figure{}
	unknown(t, "a sum", one.Plus(none))
	unknown(t, "a difference", none.Minus(one))
	unknown(t, "a product", none.Times(2))
	unknown(t, "a share of nothing", one.Per(0))
	is(t, "a share", one.Per(4), 0.25)
	if none.Text(1) != "unknown" || one.Text(1) != "1.0" {
		t.Error(none.Text(1), one.Text(1))
	}
	text, err := json.Marshal([]measure.Figure{measure.Known(0.5), none})
	if err != nil || string(text) != "[0.5,null]" {
		t.Error(string(text), err)
	}
	var back []measure.Figure
	if err := json.Unmarshal(text, &back); err != nil || back[0] != measure.Known(0.5) || back[1] != none {
		t.Error(back, err)
	}
}

func TestHeapWatchSeesThePeak(t *testing.T) {
	w := measure.WatchHeap(time.Hour) // it looks first and last at any rate
	big := make([]byte, 64<<20)
	for i := range big {
		big[i] = 1
	}
	if most := w.Stop(); most < 64<<20 {
		t.Errorf("%d bytes", most)
	}
	runtime.KeepAlive(big)
}
