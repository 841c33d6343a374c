//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nodeProgram is the package of the node program.
const nodeProgram = "github.com/xxljob/xxljob/internal/test/chaos/node"

// buildNode compiles the node program: with failpoints, as who runs all faults needs it, and where
// clock is set with a wall clock that can be stepped.
func buildNode(dir string, clock bool) (string, error) {
	if !clock {
		return goBuild(dir, "-tags", "failpoint")
	}
	overlay, err := overlayTime(dir)
	if err != nil {
		return "", err
	}
	return goBuild(dir, "-tags", "failpoint,clockstep", "-overlay", overlay)
}

// goBuild compiles the node program with the flags.
func goBuild(dir string, flags ...string) (string, error) {
	program := filepath.Join(dir, "node")
	args := append([]string{"build", "-o", program}, flags...)
	out, err := exec.Command("go", append(args, nodeProgram)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("chaos: build the node program: %w\n%s", err, out)
	}
	return program, nil
}

// A process cannot have a wall clock of its own on Linux: time namespaces cover the
// monotonic clocks only, and a Go program reads the clock without the C library
// that could be put in its way. So package time itself is built with a step, which
// everything in the process then sees, the scheduler and the driver included.
const (
	nowAsItIs = `func Now() Time {
	sec, nsec, mono := runtimeNow()
`
	nowStepped = `//go:linkname wallStep
var wallStep int64

func Now() Time {
	sec, nsec, mono := runtimeNow()
	if step := atomic.LoadInt64(&wallStep); step != 0 {
		n := sec*1e9 + int64(nsec) + step
		sec, nsec = n/1e9, int32(n%1e9)
	}
`
)

// overlayTime writes a copy of the time package's main file with a step, and the
// overlay file that the go command takes.
func overlayTime(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	data, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	text := strings.Replace(string(data), nowAsItIs, nowStepped, 1)
	text = strings.Replace(text, "import (\n", "import (\n\t\"sync/atomic\"\n", 1)
	if strings.Count(text, "wallStep") != 3 || !strings.Contains(text, "sync/atomic") {
		return "", fmt.Errorf("chaos: %s is not as expected: its Now has changed", original)
	}
	stepped := filepath.Join(dir, "time.go")
	if err := os.WriteFile(stepped, []byte(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: stepped}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}
