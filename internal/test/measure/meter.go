package measure

import (
	"context"
	"runtime/metrics"
	"time"
)

// Meter knows whose use is measured. The zero value measures this process and the machine. Its
// fields must not be changed while Now is called; its methods may be called concurrently.
type Meter struct {
	// Proc is where processes are looked up. The zero value is /proc.
	Proc Proc
	// Postmaster is the process id of a Postgres server on this machine; zero is none, or one
	// that is not known. See Proc.Postmaster.
	Postmaster int
	// Query asks that server. Nil means that nobody is asked, and that WAL is unknown.
	Query Query
	// Children are the process ids of further processes that are measured together, such as
	// executors. Their own children are not.
	Children []int
}

// Moment is how much has been used up to a time. Times of CPU are in seconds of one core.
type Moment struct {
	At time.Time
	// OwnCPU is this process's, ServerCPU that of Postgres with all its processes, those that
	// have ended included, ChildCPU that of Meter.Children, and BusyCPU the machine's.
	OwnCPU, ServerCPU, ChildCPU, BusyCPU Figure
	// WAL is the position up to which the server's log is filled, in bytes.
	WAL Figure
	// AllocBytes and AllocObjects are what this process has allocated since it was started.
	AllocBytes, AllocObjects Figure
}

// Usage is what has been used between two moments. Times of CPU are in seconds of one core.
type Usage struct {
	Elapsed                     time.Duration
	OwnCPU, ServerCPU, ChildCPU Figure
	WALBytes                    Figure
	AllocBytes, AllocObjects    Figure
	// OtherCores is how many cores were busy with processes that are not measured, on the
	// average. The kernel counts in hundredths of a second, so it may be slightly below zero
	// on a machine that is idle otherwise.
	OtherCores Figure
}

// Now reads what has been used so far. What cannot be read is unknown.
func (m Meter) Now(ctx context.Context) Moment {
	x := Moment{At: time.Now(), OwnCPU: ownCPU(), BusyCPU: m.Proc.Busy(), ChildCPU: m.children()}
	x.AllocBytes, x.AllocObjects = allocated()
	if m.Postmaster != 0 {
		x.ServerCPU = m.Proc.Tree(m.Postmaster)
	}
	if m.Query != nil {
		x.WAL = WAL(ctx, m.Query)
	}
	return x
}

func (m Meter) children() Figure {
	sum := Known(0)
	for _, pid := range m.Children {
		sum = sum.Plus(m.Proc.Process(pid))
	}
	return sum
}

// To returns what has been used between two moments of one Meter. A server whose use is unknown
// is elsewhere, or it counts among the others.
func (m Moment) To(later Moment) Usage {
	u := Usage{
		Elapsed:      later.At.Sub(m.At),
		OwnCPU:       later.OwnCPU.Minus(m.OwnCPU),
		ServerCPU:    later.ServerCPU.Minus(m.ServerCPU),
		ChildCPU:     later.ChildCPU.Minus(m.ChildCPU),
		WALBytes:     later.WAL.Minus(m.WAL),
		AllocBytes:   later.AllocBytes.Minus(m.AllocBytes),
		AllocObjects: later.AllocObjects.Minus(m.AllocObjects),
	}
	measured := u.OwnCPU.Plus(u.ChildCPU)
	if _, ok := u.ServerCPU.Value(); ok {
		measured = measured.Plus(u.ServerCPU)
	}
	u.OtherCores = later.BusyCPU.Minus(m.BusyCPU).Minus(measured).Per(u.Elapsed.Seconds())
	return u
}

// allocated is what this process has allocated since its start.
func allocated() (bytes, objects Figure) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(s)
	// Tiny objects share a block, which is counted once among the objects.
	return count(s[0]), count(s[1]).Plus(count(s[2]))
}

// count is unknown where the runtime has no such figure any more.
func count(s metrics.Sample) Figure {
	if s.Value.Kind() != metrics.KindUint64 {
		return Figure{}
	}
	return Known(float64(s.Value.Uint64()))
}
