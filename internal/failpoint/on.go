//go:build failpoint && unix

package failpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Enabled reports whether this program was built with failpoints.
const Enabled = true

// The environment of a program with failpoints.
const (
	// envRules holds rules that are there from the start.
	envRules = "XXLJOB_FAILPOINT"
	// envFile names the control file: rules, which replace the former ones when
	// the file is replaced. Beside it, in a file with .hits behind its name, each
	// rule that is carried out leaves a line first.
	envFile = "XXLJOB_FAILPOINT_FILE"
)

// points is the table of the process; Hit has no other way to reach it.
var points table

// Hit carries out the rule for the place, if there is one.
func Hit(name string) { points.hit(name) }

// table holds the rules of a process.
type table struct {
	once sync.Once
	file string // set by once

	mu    sync.Mutex
	stamp stamp   // guarded by mu: of the control file as it was read last
	armed []armed // guarded by mu
}

// armed is a rule that waits for its hit.
type armed struct {
	Rule
	seen int
}

// stamp tells one control file from the next.
type stamp struct {
	inode uint64
	size  int64
	mtime time.Time
}

func (t *table) hit(name string) {
	t.once.Do(t.open)
	rule, ok := t.match(name)
	if !ok {
		return
	}
	t.note(name, rule)
	switch rule.Action {
	case Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case Stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case Sleep:
		time.Sleep(rule.For)
	case Panic:
		panic("failpoint: " + name)
	case Block:
		t.block(rule)
	}
}

// open reads the environment.
func (t *table) open() {
	t.file = os.Getenv(envFile)
	t.arm(os.Getenv(envRules))
}

// arm replaces the rules. Rules that cannot be read are a mistake of the test
// that wrote them, which would otherwise pass without a fault.
func (t *table) arm(text string) {
	rules, err := Parse(text)
	if err != nil {
		panic(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = nil
	for _, r := range rules {
		t.armed = append(t.armed, armed{Rule: r})
	}
}

// match counts the hit and returns the rule that it makes due, once.
func (t *table) match(name string) (Rule, bool) {
	t.reload()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.armed {
		a := &t.armed[i]
		if a.Name != name && a.Name != "*" {
			continue
		}
		if a.seen++; a.seen == a.At {
			return a.Rule, true
		}
	}
	return Rule{}, false
}

// reload reads the control file if it is another one than before.
func (t *table) reload() {
	if t.file == "" {
		return
	}
	info, err := os.Stat(t.file)
	if err != nil {
		return // not written yet
	}
	s := stamp{size: info.Size(), mtime: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = uint64(sys.Ino)
	}
	t.mu.Lock()
	same := s == t.stamp
	t.stamp = s
	t.mu.Unlock()
	if same {
		return
	}
	if text, err := os.ReadFile(t.file); err == nil {
		t.arm(string(text))
	}
}

// note says which rule is carried out, in one write, so that the line is there
// also when the process is gone the moment after.
func (t *table) note(name string, r Rule) {
	if t.file == "" {
		return
	}
	f, err := os.OpenFile(t.file+".hits", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%d %s %s\n", time.Now().UnixMilli(), name, r)
}

// block waits until the rule is gone from the control file.
func (t *table) block(r Rule) {
	for t.holds(r) {
		time.Sleep(5 * time.Millisecond)
		t.reload()
	}
}

func (t *table) holds(r Rule) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.armed {
		if a.Rule == r {
			return true
		}
	}
	return false
}
