package measure

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Machine is where something was measured, and the settings of the Go runtime.
type Machine struct {
	CPU        string `json:"cpu"` // empty where it is unknown
	Cores      int    `json:"cores"`
	Memory     Figure `json:"memory_bytes"`
	System     string `json:"system"` // GOOS/GOARCH, and the version of Linux
	Go         string `json:"go"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	GOGC       string `json:"gogc"`       // per cent, or "off"
	GOMEMLIMIT string `json:"gomemlimit"` // bytes, or "none"
}

// Machine describes this machine and the settings that hold now.
func (p Proc) Machine() Machine {
	m := Machine{
		CPU:        parseModel(p.read("cpuinfo")),
		Cores:      runtime.NumCPU(),
		Memory:     parseKB(p.read("meminfo"), "MemTotal:"),
		System:     strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + strings.TrimSpace(p.read("sys/kernel/osrelease"))),
		Go:         runtime.Version(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	m.GOGC, m.GOMEMLIMIT = collector()
	return m
}

// String is one line.
func (m Machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = "CPU unknown"
	}
	return fmt.Sprintf("%s, %d cores, %s GiB, %s, %s GOMAXPROCS=%d GOGC=%s GOMEMLIMIT=%s",
		cpu, m.Cores, m.Memory.Times(1.0/(1<<30)).Text(1), m.System, m.Go, m.GOMAXPROCS, m.GOGC, m.GOMEMLIMIT)
}

// collector is what the environment or the program has set.
func collector() (gogc, limit string) {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(s)
	gogc, limit = "unknown", "unknown"
	if s[0].Value.Kind() == metrics.KindUint64 {
		if gogc = strconv.FormatUint(s[0].Value.Uint64(), 10); s[0].Value.Uint64() == math.MaxUint64 {
			gogc = "off"
		}
	}
	if s[1].Value.Kind() == metrics.KindUint64 {
		if limit = strconv.FormatUint(s[1].Value.Uint64(), 10); s[1].Value.Uint64() == math.MaxInt64 {
			limit = "none"
		}
	}
	return gogc, limit
}

// parseModel is the model of the first CPU in /proc/cpuinfo; empty where it is not named.
func parseModel(text string) string {
	for line := range strings.Lines(text) {
		name, model, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return ""
}
