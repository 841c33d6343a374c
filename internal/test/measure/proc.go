package measure

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Proc is the directory /proc of Linux, or one that is made up for a test. Where a system has
// none, all that is asked is unknown. The zero value is /proc.
type Proc struct{ Dir fs.FS }

func (p Proc) dir() fs.FS {
	if p.Dir == nil {
		return os.DirFS("/proc")
	}
	return p.Dir
}

// read returns a file; empty where there is none.
func (p Proc) read(name string) string {
	text, err := fs.ReadFile(p.dir(), name)
	if err != nil {
		return "" // the process has ended, or this is not Linux
	}
	return string(text)
}

func (p Proc) process(pid int) (process, bool) {
	return parseProcess(p.read(path.Join(strconv.Itoa(pid), "stat")))
}

// Process is the CPU time that one process has used itself, in seconds.
func (p Proc) Process(pid int) Figure {
	x, ok := p.process(pid)
	return Figure{x.own, ok}
}

// Tree is the CPU time of a process, of its living children, and of those that it has waited
// for, in seconds. That is a whole Postgres server if the process is its first one: all others
// are its children, and it waits for each that ends. Children of children are not looked for.
func (p Proc) Tree(pid int) Figure {
	for range 10 {
		before, ok := p.process(pid)
		if !ok {
			return Figure{}
		}
		sum := before.own + before.reaped
		for _, child := range p.childrenOf(pid) {
			sum += child.own
		}
		// A child that has ended meanwhile might be counted twice, or not at all.
		if after, ok := p.process(pid); ok && after.reaped == before.reaped {
			return Known(sum)
		}
	}
	return Figure{} // children end all the time
}

// childrenOf returns the living children of a process.
func (p Proc) childrenOf(pid int) (children []process) {
	entries, err := fs.ReadDir(p.dir(), ".")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if x, ok := p.process(id); ok && x.parent == pid {
			children = append(children, x)
		}
	}
	return children
}

// Busy is how long the cores of the machine have been busy, in seconds of one core. Time that
// a hypervisor has given to others is counted: it was not there for those that are measured.
func (p Proc) Busy() Figure { return parseBusy(p.read("stat")) }

// PeakRSS is the most memory that this process has had resident at once, in bytes, since its
// start or since ResetPeakRSS.
func (p Proc) PeakRSS() Figure { return parseKB(p.read("self/status"), "VmHWM:") }

// PeakRSSOf is PeakRSS of another process.
func (p Proc) PeakRSSOf(pid int) Figure {
	return parseKB(p.read(path.Join(strconv.Itoa(pid), "status")), "VmHWM:")
}

// ResetPeakRSS has PeakRSS begin again with what is resident now. It does nothing where the
// system does not offer that.
func ResetPeakRSS() {
	// Whoever measures on such a system reads the peak since the start of the process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// startedAt is when a process was started, in seconds since 1970.
func (p Proc) startedAt(pid int) (float64, bool) {
	x, ok := p.process(pid)
	for line := range strings.Lines(p.read("stat")) {
		if boot, found := strings.CutPrefix(line, "btime "); found {
			at, err := strconv.ParseFloat(strings.TrimSpace(boot), 64)
			return at + x.sinceBoot, ok && err == nil
		}
	}
	return 0, false
}
